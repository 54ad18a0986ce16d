//! The new process of a pane whose own command is the client.
//!
//! tmux would start it with the pane's environment, not the old client's. That
//! one may hold keys, so it stands in no file and on no command line: the helper
//! hands it over through a pipe that exists for the moment.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::edge::state::State;
use crate::edge::{clock, debug_log, spawn};
use crate::pure::session_id::SessionId;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::helper;
use super::intent::Intent;

/// How long each side waits for the other, in milliseconds.
const WAIT_MS: u64 = 5000;
const NAP_MS: u64 = 20;
/// More than any environment holds.
const BYTES_MAX: usize = 8 << 20;

fn pipe_name(sid: &SessionId) -> String {
    format!("session/{sid}/restart.pipe")
}

/// A pipe to hand an environment over; taken away when dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Pipe<'a> {
    state: &'a State,
    name: String,
}

impl Drop for Pipe<'_> {
    fn drop(&mut self) {
        self.state.remove(&self.name).ok();
    }
}

impl<'a> Pipe<'a> {
    /// Makes the pipe, readable by nobody else.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn make(state: &'a State, sid: &SessionId) -> std::io::Result<Self> {
        let name = pipe_name(sid);
        state.remove(&name)?;
        make_fifo(state, &name)?;
        Ok(Self { state, name })
    }

    /// Hands the words over to whoever reads within the wait.
    ///
    /// # Errors
    /// Nobody read, or not to the end.
    pub(super) fn hand_over(&self, words: &[OsString]) -> std::io::Result<()> {
        let mut bytes: Vec<u8> = Vec::new();
        for word in words {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        bytes.push(0); // An empty word: the whole of it is here.
        let pipe = patiently(|| {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match fs::openat(self.state.dir(), &self.name, flags, Mode::empty()) {
                Err(Errno::NXIO) => None,
                other => Some(other),
            }
        })??;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let written = patiently(|| match rustix::io::write(&pipe, rest) {
                Err(Errno::AGAIN | Errno::INTR) => None,
                other => Some(other),
            })??;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn make_fifo(state: &State, name: &str) -> std::io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(fs::mknodat(state.dir(), name, fs::FileType::Fifo, mode, 0)?)
}

/// Without `/proc` no process is restarted, so nobody comes here.
#[cfg(not(target_os = "linux"))]
fn make_fifo(_state: &State, _name: &str) -> std::io::Result<()> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}

fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> std::io::Result<T> {
    let mut waited = 0;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if waited >= WAIT_MS {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut));
        }
        clock::sleep_ms(NAP_MS);
        waited += NAP_MS;
    }
}

/// Takes the words from the pipe; `None` where they did not come whole.
fn take_over(state: &State, sid: &SessionId) -> Option<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let pipe: OwnedFd = fs::openat(state.dir(), pipe_name(sid), flags, Mode::empty()).ok()?;
    let mut bytes: Vec<u8> = Vec::new();
    let is_whole = |bytes: &[u8]| bytes == b"\0" || bytes.ends_with(b"\0\0");
    let mut part = vec![0; 64 << 10];
    patiently(|| {
        match rustix::io::read(&pipe, &mut part) {
            Ok(count) => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Some(()),
        }
        (is_whole(&bytes) || bytes.len() > BYTES_MAX).then_some(())
    })
    .ok()?;
    if !is_whole(&bytes) {
        return None;
    }
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// `--host INTENT`: becomes the client. The exit code is that of a failure.
pub(super) fn run(state: &State, name: &str) -> i32 {
    let Some((sid, intent)) = helper::named(state, name) else {
        return 1;
    };
    let log = |text: &str| debug_log::line(state, Some(&sid), &intent.rung, text);
    let environ = take_over(state, &sid);
    if environ.is_none() {
        log("the old environment did not come; the pane's own is used");
    }
    let (Some(words), Some(cwd)) = (intent.words(), Intent::path(&intent.cwd)) else {
        log("failed: the intent's command line can't be read");
        return 1;
    };
    let error = spawn::become_program(&words, &cwd, environ.as_deref());
    let program = words.first().map(OsString::as_os_str).unwrap_or_default();
    log(&format!(
        "failed: {} can't be started: {error}",
        OsStr::to_string_lossy(program)
    ));
    1
}
