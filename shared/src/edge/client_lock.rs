//! The client's own locks on a credential store.
//!
//! The client refreshes a token under `.oauth_refresh.lock` and rewrites the
//! whole file under `.storage-write.lock`, both folders made in the resolved
//! store. A shard that is flipped in the middle of a refresh loses the login
//! (measured, 2.1.332), so a flip holds both, for a moment. A live lock is never
//! stolen: the client renews it every 5 s and calls it stale after 60 s.

use std::io;
use std::path::{Path, PathBuf};

use super::clock;

/// The locks, in the order in which they are taken.
pub const NAMES: [&str; 2] = [".oauth_refresh.lock", ".storage-write.lock"];

/// The client's own staleness (ms), from the lock's last renewal.
pub const STALE_MS: i64 = 60_000;

/// Both locks, held; dropping gives them back.
#[derive(Debug)]
#[must_use]
pub struct Held(Vec<PathBuf>);

impl Drop for Held {
    fn drop(&mut self) {
        for lock in self.0.iter().rev() {
            fs_err::remove_dir(lock).ok();
        }
    }
}

/// Tries to take both locks of a store, without waiting; `Ok(None)` means that
/// somebody holds one.
///
/// # Errors
/// The store can't be written.
pub fn try_take(store: &Path) -> io::Result<Option<Held>> {
    let mut held = Held(Vec::new());
    for name in NAMES {
        let lock = store.join(name);
        match make(&lock) {
            Ok(true) => held.0.push(lock),
            Ok(false) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(held))
}

/// Whether the client refreshes the login of this store at the moment.
pub fn is_live(store: &Path) -> bool {
    let lock = store.join(NAMES[0]);
    lock.exists() && !is_stale(&lock)
}

fn make(lock: &Path) -> io::Result<bool> {
    match fs_err::create_dir(lock) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_stale(lock) {
                return Ok(false);
            }
            // As the client does: the orphan goes, and whoever makes it anew has it.
            fs_err::remove_dir(lock).ok();
            match fs_err::create_dir(lock) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

fn is_stale(lock: &Path) -> bool {
    let renewed = fs_err::metadata(lock).and_then(|metadata| metadata.modified());
    let renewed = renewed
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let renewed = renewed.and_then(|since| i64::try_from(since.as_millis()).ok());
    renewed.is_some_and(|at| clock::now_ms() - at > STALE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn held_once_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let held = try_take(dir.path()).unwrap().unwrap();
        assert!(try_take(dir.path()).unwrap().is_none());
        drop(held);
        assert!(try_take(dir.path()).unwrap().is_some());
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_live_lock_is_respected_and_an_orphan_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join(NAMES[1]);
        fs_err::create_dir(&lock).unwrap();
        assert!(try_take(dir.path()).unwrap().is_none());
        assert!(
            !dir.path().join(NAMES[0]).exists(),
            "the first lock is given back"
        );
        #[expect(clippy::disallowed_methods, reason = "the file system stamps real time")]
        let old = SystemTime::now() - Duration::from_secs(61);
        std::fs::File::open(&lock).unwrap().set_modified(old).unwrap();
        assert!(try_take(dir.path()).unwrap().is_some());
    }
}
