//! The record's correction, after the wake.
//!
//! The exact reset and the window stand only in the transcript, on a line that
//! may reach the disk 0.2 s after the hook had to act. A child that outlives the
//! hook reads them and puts them into the pool.

use std::ffi::OsString;
use std::path::PathBuf;

use shared::edge::state::State;
use shared::edge::transcript_file::{self, WINDOW_BYTES};
use shared::edge::{clock, deadline, pool_file, spawn, wall_file};
use shared::hook::{Arguments, Call};
use shared::pure::pool::Wall;
use shared::pure::session_id::SessionId;
use shared::pure::transcript::{Tail, Turn};

/// How long the line is waited for, in ms.
const WAIT_MS: i64 = 3_000;

const VERB: &str = "--correct";

/// What is to be corrected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    root: PathBuf,
    sid: SessionId,
    account: String,
    window: String,
    transcript: PathBuf,
    seen_at: i64,
}

impl Order {
    /// The order in the words of the command line, if they are one.
    pub(crate) fn from_words(arguments: &Arguments) -> Option<Self> {
        let [verb, sid, account, window, transcript, seen_at] = arguments.rest.as_slice() else {
            return None;
        };
        (verb == VERB).then_some(())?;
        Some(Self {
            root: arguments.root.clone()?,
            sid: SessionId::parse(sid.to_str()?)?,
            account: account.to_str()?.to_owned(),
            window: window.to_str()?.to_owned(),
            transcript: PathBuf::from(transcript),
            seen_at: seen_at.to_str()?.parse().ok()?,
        })
    }

    pub(crate) fn carry_out(&self) {
        deadline::arm(10);
        rustix::process::setsid().ok();
        let Ok(state) = State::open_root(&self.root) else {
            return;
        };
        let give_up = clock::now_ms() + WAIT_MS;
        loop {
            if let Some((window, resets_at)) = self.look() {
                self.put(&state, &window, resets_at);
                return;
            }
            if clock::now_ms() > give_up {
                return;
            }
            clock::sleep_ms(50);
        }
    }

    /// The wall as the transcript's newest failure states it.
    fn look(&self) -> Option<(String, i64)> {
        let (bytes, whole) = transcript_file::read_tail(&self.transcript, WINDOW_BYTES).ok()?;
        let tail = Tail::from_bytes(&bytes, whole);
        let at = match tail.turn() {
            Turn::Failed(at) => at,
            // The waked turn has begun already: the failure is a few lines up.
            _ => tail
                .lines
                .iter()
                .rposition(|line| line.is_main() && line.quota_limits.is_some())?,
        };
        let limits = tail.lines.get(at)?.quota_limits.as_ref()?;
        let resets_at = limits.resets_at?;
        let resets_at = if resets_at > 100_000_000_000 {
            resets_at / 1000
        } else {
            resets_at
        };
        // An older wall's line must not correct this one's record.
        (resets_at > self.seen_at / 1000 - 60).then_some(())?;
        Some((limits.rate_limit_type.as_deref()?.to_owned(), resets_at))
    }

    fn put(&self, state: &State, window: &str, resets_at: i64) {
        let corrected = pool_file::change(state, 2_000, |pool| {
            if let Some(account) = pool.accounts.get_mut(&self.account)
                && account
                    .walls
                    .get(&self.window)
                    .is_some_and(|wall| wall.seen_at == self.seen_at)
            {
                account.walls.remove(&self.window);
            }
            pool.note_wall(
                &self.account,
                window,
                Wall {
                    seen_at: self.seen_at,
                    resets_at: Some(resets_at),
                },
            );
        });
        let noted = wall_file::read(state, &self.sid).and_then(|mut file| {
            file.window = Some(window.to_owned());
            file.resets_at = Some(resets_at);
            wall_file::write(state, &self.sid, &file)
        });
        if let Err(why) = corrected.and(noted) {
            shared::edge::debug_log::line(
                state,
                Some(&self.sid),
                "walled-heal",
                &format!("not corrected: {why:#}"),
            );
        }
    }
}

/// Starts the correction; it outlives the hook, which exits in a moment.
pub(crate) fn start(call: &Call, account: &str, window: &str) {
    let Some(transcript) = call.payload.transcript_path.as_deref() else {
        return;
    };
    let started = std::env::current_exe().and_then(|own| {
        let mut command = spawn::command(own);
        command
            .arg("--root")
            .arg(call.state.path())
            .arg(VERB)
            .arg(call.sid.as_str());
        command
            .args([account, window, transcript])
            .arg(OsString::from(call.started.to_string()));
        shared::edge::env::without_client_variables(&mut command);
        spawn::start_detached(command)
    });
    if let Err(why) = started {
        call.log(&format!("the record is not corrected: {why}"));
    }
}
