//! The bound on a hook's working phase, and the signals that must not end it.
//!
//! A hook that hangs would cost the person the turn. The alarm ends it with exit
//! code 0, which the client reads as "nothing to say", and leaves a line in the
//! log. A reader that
//! went away must not kill a hook either, so SIGPIPE is ignored: the hooks have
//! no `std` start code that would do it. Nor must a limit on file sizes: with
//! SIGXFSZ ignored the write fails and is handled like any other.

#![expect(
    unsafe_code,
    reason = "signal dispositions have no safe interface in std or rustix"
)]

use std::ffi::CString;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the alarm writes, and where: made beforehand, since a signal handler may
/// neither allocate nor format.
struct Note {
    path: CString,
    line: Vec<u8>,
}

static NOTE: AtomicPtr<Note> = AtomicPtr::new(ptr::null_mut());

/// Names the log that the alarm appends `line` to. A path that can't be passed to
/// the system leaves the alarm without a note.
pub fn note(log: &Path, line: String) {
    use std::os::unix::ffi::OsStrExt as _;
    if let Ok(path) = CString::new(log.as_os_str().as_bytes()) {
        // Never given back: the alarm may come at any moment of the process.
        let note = Box::leak(Box::new(Note {
            path,
            line: line.into_bytes(),
        }));
        NOTE.store(note, Ordering::Release);
    }
}

/// Ends the process with exit code 0 after `seconds`, and ignores the signals of
/// a closed pipe and of a file that may not grow.
pub fn arm(seconds: u32) {
    extern "C" fn give_up(_signal: libc::c_int) {
        // SAFETY: `open`, `write` and `_exit` are async-signal-safe; the note, once
        // stored, is never changed or freed.
        unsafe {
            if let Some(note) = NOTE.load(Ordering::Acquire).as_ref() {
                let flags =
                    libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
                let log = libc::open(note.path.as_ptr(), flags, 0o600);
                if log >= 0 {
                    libc::write(log, note.line.as_ptr().cast(), note.line.len());
                }
            }
            libc::_exit(0)
        }
    }
    let handler: extern "C" fn(libc::c_int) = give_up;
    // SAFETY: the handler keeps to what a handler may call; all three calls take
    // plain values.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGALRM, handler as libc::sighandler_t);
    }
    rearm(seconds);
}

/// Starts the bound anew, as after a sleep; 0 takes it away, as before one.
pub fn rearm(seconds: u32) {
    // SAFETY: `alarm` takes a plain value and has no memory effects.
    unsafe {
        libc::alarm(seconds);
    }
}

/// Ends the process at once, without running destructors: state is already on
/// disk and the kernel closes what is open.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` does not return and touches no memory of ours.
    unsafe { libc::_exit(code) }
}
