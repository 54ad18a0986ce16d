//! The client's transcript, read from its end and never blocked on.
//!
//! It can be a gigabyte, hold a line of 20 MB, be missing, a folder or a fifo.
//! The cost of a look does not grow with it: only the last bytes are read.

use std::io;
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};

use super::state;

/// The usual window, in bytes: bookkeeping lines surround the message, up to
/// 83 KB each (measured, 2.1.332).
pub const WINDOW_BYTES: usize = 256 << 10;

/// The widest window, in bytes, for when the usual one shows no conversation.
pub const WINDOW_BYTES_MAX: usize = 4 << 20;

/// The last `bytes_max` of the file, and whether that is all of it.
///
/// # Errors
/// Missing, unreadable, or not a regular file.
pub fn read_tail(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let name = |error: rustix::io::Errno| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = fs::openat(CWD, path, flags, Mode::empty()).map_err(name)?;
    let stat = fs::fstat(&file).map_err(name)?;
    if !fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{}: not a regular file", path.display()),
        ));
    }
    state::read_tail_of(rustix::fd::AsFd::as_fd(&file), bytes_max)
}
