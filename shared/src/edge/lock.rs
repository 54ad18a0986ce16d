//! Our own locks: advisory, on a file that is never deleted, waited for in
//! bounded naps. Whoever does not get one in time acts as if busy.

use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, flock};

use super::clock;
use super::state::{Access, State};

/// A held lock; dropping it (or dying) releases it.
#[derive(Debug)]
#[must_use]
pub struct Lock {
    _file: OwnedFd,
}

/// Takes the lock file `name` under the state root, waiting at most `wait_ms`.
///
/// `Ok(None)` means that somebody else held it the whole time.
///
/// # Errors
/// The lock file can't be opened or the file system refuses locks.
pub fn take(state: &State, name: &str, wait_ms: u64) -> std::io::Result<Option<Lock>> {
    let file = state.open(name, Access::Lock)?;
    let is_held = hold(&file, FlockOperation::NonBlockingLockExclusive, wait_ms)?;
    Ok(is_held.then_some(Lock { _file: file }))
}

/// Locks an open file until it is closed, waiting at most `wait_ms`; whether it
/// could be had. `operation` must be one that does not block.
///
/// # Errors
/// The file system refuses locks.
pub fn hold(file: &OwnedFd, operation: FlockOperation, wait_ms: u64) -> std::io::Result<bool> {
    let mut waited = 0;
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if waited < wait_ms => {
                let nap = 5.min(wait_ms - waited);
                clock::sleep_ms(nap);
                waited += nap;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
