//! The client's transcript, read from its end and never blocked on.
//!
//! It can be a gigabyte, hold a line of 20 MB, be missing, a folder or a fifo.
//! The cost of a look does not grow with it: only the last bytes are read.

use std::io;
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};

use super::state;
use crate::pure::transcript::{Tail, Turn};

/// The usual window, in bytes: bookkeeping lines surround the message, up to
/// 83 KB each (measured, 2.1.332).
pub const WINDOW_BYTES: usize = 256 << 10;

/// The widest window, in bytes, for when the usual one shows no conversation.
pub const WINDOW_BYTES_MAX: usize = 4 << 20;

/// For whoever has the time: a line of 20 MB was seen, and nothing shows behind
/// one without a wider look.
const WINDOW_BYTES_PATIENT: usize = 48 << 20;

/// Bytes from the end of a transcript. [`Bytes::tail`] reads them.
#[derive(Debug)]
pub struct Bytes {
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Bytes {
    /// The lines in these bytes.
    pub fn tail(&self) -> Tail<'_> {
        Tail::from_bytes(&self.bytes, self.is_whole)
    }
}

/// Reads as much of the end as shows the conversation, at most 48 MB.
///
/// # Errors
/// Missing, unreadable, or not a regular file.
pub fn read_until_seen(path: &Path) -> io::Result<Bytes> {
    let mut seen = Bytes {
        bytes: Vec::new(),
        is_whole: true,
    };
    for window in [WINDOW_BYTES, WINDOW_BYTES_MAX, WINDOW_BYTES_PATIENT] {
        let (bytes, is_whole) = read_tail(path, window)?;
        seen = Bytes { bytes, is_whole };
        if is_whole || seen.tail().turn() != Turn::Unseen {
            break;
        }
    }
    Ok(seen)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &str = r#"{"type":"user","message":{"role":"user","content":"go"}}"#;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn a_line_behind_a_huge_one_is_found() {
        let huge = format!(r#"{{"type":"attachment","data":"{}"}}"#, "x".repeat(20 << 20));
        let file = file(format!("{ASKED}\n{huge}\n").as_bytes());
        assert_eq!(
            read_until_seen(file.path()).unwrap().tail().turn(),
            Turn::AwaitsModel
        );
    }

    #[test]
    fn only_the_end_of_a_large_file_is_read() {
        let file = file(b"");
        file.as_file().set_len(1 << 30).unwrap();
        let mut content = fs_err::OpenOptions::new().append(true).open(file.path()).unwrap();
        io::Write::write_all(&mut content, format!("\n{ASKED}\n").as_bytes()).unwrap();
        let read = read_until_seen(file.path()).unwrap();
        assert_eq!(read.bytes.len(), WINDOW_BYTES);
        assert_eq!(read.tail().turn(), Turn::AwaitsModel);
    }

    #[test]
    fn what_is_no_file_is_an_error_and_never_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        fs::mknodat(CWD, &fifo, fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for bad in [folder.path(), &fifo, &folder.path().join("missing")] {
            let why = read_until_seen(bad).unwrap_err().to_string();
            assert!(why.contains(bad.to_str().unwrap()), "{why}");
        }
    }
}
