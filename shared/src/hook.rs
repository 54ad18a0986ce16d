//! The frame of every hook executable.
//!
//! A hook stands between the client and the person's next turn. Whatever goes
//! wrong in it, the turn must go on: the frame reads standard input up to a
//! bound, ends the process quietly at a deadline, turns a panic or an error into
//! one log line, and exits 0. Exit code 2 has a meaning to the client (hold a
//! stop, wake a session, stop a prompt), so it is only ever a deliberate
//! [`Answer`].

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::edge::state::State;
use crate::edge::{clock, deadline, debug_log};
use crate::pure::hook_payload::Payload;
use crate::pure::session_id::{PromptId, SessionId};
use crate::pure::time_text;

/// Bound on the working phase of any hook, in seconds (rule L4).
pub const WORKING_PHASE_S: u32 = 9;

/// The most that is read from standard input, in bytes. A payload of 10 MB (a
/// huge last answer) is still whole; a larger one is not ours to judge.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;

/// What a hook was called with.
#[derive(Debug)]
pub struct Call<'a> {
    /// The hook's name, as in its log lines.
    pub name: &'static str,
    /// The state root.
    pub state: &'a State,
    /// The payload.
    pub payload: &'a Payload<'a>,
    /// The payload's session id, checked.
    pub sid: SessionId,
    /// When the hook started (ms since 1970).
    pub started: i64,
    /// Decide and print the decision, but do nothing (`--explain`).
    pub explain: bool,
}

impl Call<'_> {
    /// One line in the session's debug log.
    pub fn log(&self, text: &str) {
        debug_log::line(self.state, Some(&self.sid), self.name, text);
    }

    /// The payload's prompt id, where it is there and safe.
    pub fn prompt_id(&self) -> Option<PromptId> {
        PromptId::parse(self.payload.prompt_id.as_deref()?)
    }

    /// Whether a person switched this session, or everything, off.
    pub fn is_off(&self) -> bool {
        self.state.exists("off")
    }
}

/// What a hook tells the client.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// Nothing: the client goes on as if no hook were there.
    #[default]
    Nothing,
    /// JSON on standard output, exit code 0.
    Json(String),
    /// Exit code 2 with this text on standard error. From an `asyncRewake` hook
    /// it wakes the session; from `UserPromptSubmit` it stops the prompt.
    Two(String),
}

/// Arguments after the name: `--root DIR`, `--explain`, and the rest untouched.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The state root, where given.
    pub root: Option<PathBuf>,
    /// `--explain`.
    pub explain: bool,
    /// `--version`.
    pub version: bool,
    /// Words that are not the frame's: a hook's own verbs.
    pub rest: Vec<OsString>,
}

impl Arguments {
    /// Reads the words after the program's name. Nothing is an error: a hook
    /// that refused its arguments would be a hook that is silently gone.
    pub fn parse(words: impl Iterator<Item = OsString>) -> Self {
        let mut arguments = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"--root" => arguments.root = words.next().map(PathBuf::from),
                b"--explain" => arguments.explain = true,
                b"--version" => arguments.version = true,
                _ => arguments.rest.push(word),
            }
        }
        arguments
    }
}

/// Runs a hook and gives the exit code; see [`Answer`].
///
/// `work` decides and acts. Its error, or a panic in it, becomes a log line.
pub fn run(name: &'static str, work: fn(&Call) -> anyhow::Result<Answer>) -> i32 {
    deadline::arm(WORKING_PHASE_S);
    let started = clock::now_ms();
    let arguments = Arguments::parse(std::env::args_os().skip(1));
    if arguments.version {
        say(1, concat!(env!("CARGO_PKG_VERSION"), "\n"));
        return 0;
    }
    let Some(root) = arguments.root.or_else(State::default_path) else {
        return 0; // No home and no root: there is nowhere to look or to log.
    };
    let Ok(state) = State::open_root(&root) else {
        return 0;
    };
    if state.exists("off") && !arguments.explain {
        return 0;
    }
    deadline::note(
        &root.join("debug.log"),
        format!(
            "{} {name} gave up: it was not done within {WORKING_PHASE_S} s of its start or of a wait\n",
            time_text::rfc3339_ms(started)
        ),
    );
    log_panics(name, root);
    let bytes = match read_payload() {
        Ok(bytes) => bytes,
        Err(why) => {
            debug_log::line(
                &state,
                None,
                name,
                &format!("unknown: the payload can't be read: {why}"),
            );
            return 0;
        }
    };
    let payload = match Payload::parse(&bytes) {
        Ok(payload) => payload,
        Err(why) => {
            debug_log::line(
                &state,
                None,
                name,
                &format!("unknown: the payload is not understood: {why}"),
            );
            return 0;
        }
    };
    let Some(sid) = payload.session_id.as_deref().and_then(SessionId::parse) else {
        debug_log::line(
            &state,
            None,
            name,
            "unknown: the payload names no usable session id",
        );
        return 0;
    };
    let call = Call {
        name,
        state: &state,
        payload: &payload,
        sid,
        started,
        explain: arguments.explain,
    };
    match work(&call) {
        Ok(Answer::Nothing) => 0,
        Ok(Answer::Json(json)) => {
            say(1, &json);
            0
        }
        Ok(Answer::Two(text)) => {
            say(2, &text);
            2
        }
        Err(error) => {
            call.log(&format!("failed: {error:#}"));
            0
        }
    }
}

/// Writes to standard output (1) or error (2). A reader that went away is no
/// reason to fail: the error is dropped.
pub fn say(descriptor: u8, text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = match descriptor {
            1 => rustix::io::write(rustix::stdio::stdout(), rest),
            _ => rustix::io::write(rustix::stdio::stderr(), rest),
        };
        match written {
            Ok(0) => return,
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn read_payload() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        match rustix::io::read(rustix::stdio::stdin(), rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() > PAYLOAD_BYTES_MAX => {
                return Err(format!("it is larger than {PAYLOAD_BYTES_MAX} bytes"));
            }
            Ok(_) if bytes.len() == bytes.capacity() => bytes.reserve(bytes.len()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// With `panic = "abort"` a panic would end in SIGABRT; this records it and ends
/// with exit code 0 first.
fn log_panics(name: &'static str, root: PathBuf) {
    std::panic::set_hook(Box::new(move |panic| {
        if let Ok(state) = State::open_root(&root) {
            debug_log::line(&state, None, name, &format!("panicked: {panic}"));
        }
        deadline::exit_now(0);
    }));
}

/// The executable's entry, without `std`'s own start code: that saves 19 system
/// calls and 43,000 instructions of each start (measured, Linux x86-64). The
/// crate carries `#![cfg_attr(not(test), no_main)]`: the entry of its tests is
/// libtest's own, or they would silently run nothing.
///
/// With a third argument the hook has verbs of its own: that function gets the
/// arguments first, and gives the exit code where they name one.
#[macro_export]
macro_rules! hook_main {
    ($name:literal, $work:path) => {
        $crate::hook_main!(@entry $crate::hook::run($name, $work));
    };
    ($name:literal, $work:path, $verb:path) => {
        $crate::hook_main!(@entry {
            let arguments = $crate::hook::Arguments::parse(std::env::args_os().skip(1));
            $verb(&arguments).unwrap_or_else(|| $crate::hook::run($name, $work))
        });
    };
    (@entry $run:expr) => {
        fn enter() -> i32 {
            $run
        }

        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        #[expect(unsafe_code, reason = "the C entry point has to have this name")]
        extern "C" fn main(
            _count: core::ffi::c_int,
            _words: *const *const core::ffi::c_char,
        ) -> core::ffi::c_int {
            enter()
        }

        #[cfg(test)]
        const _: fn() -> i32 = enter;
    };
}
