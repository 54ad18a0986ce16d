//! The bound on a hook's working phase, and the signals that must not end it.
//!
//! A hook that hangs would cost the person the turn. The alarm ends it quietly,
//! with exit code 0, which the client reads as "nothing to say". A reader that
//! went away must not kill a hook either, so SIGPIPE is ignored: the hooks have
//! no `std` start code that would do it. Nor must a limit on file sizes: with
//! SIGXFSZ ignored the write fails and is handled like any other.

#![expect(
    unsafe_code,
    reason = "signal dispositions have no safe interface in std or rustix"
)]

/// Ends the process with exit code 0 after `seconds`, and ignores the signals of
/// a closed pipe and of a file that may not grow.
pub fn arm(seconds: u32) {
    extern "C" fn give_up(_signal: libc::c_int) {
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(0) }
    }
    let handler: extern "C" fn(libc::c_int) = give_up;
    // SAFETY: the handler only calls `_exit`; all three calls take plain values.
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
