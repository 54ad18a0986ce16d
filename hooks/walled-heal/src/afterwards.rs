//! What is left to do once the wake is out, by a child that outlives the hook.
//!
//! The exact reset and the window stand only in the transcript, on a line that
//! may reach the disk 0.2 s after the hook had to act: they are put into the pool
//! now. And where the window opens again more than a day later the client puts its
//! own dialog before an idle terminal; the wake is then queued behind it (measured,
//! 2.1.332). Nothing is typed into it, but a person is told. If nobody closes it
//! for `dialog_grace_s`, and the session runs in tmux, it is restarted as itself:
//! the new process has no dialog and the other account.

use std::path::PathBuf;

use shared::edge::signal::{self, Signal};
use shared::edge::state::State;
use shared::edge::transcript_file::{self, WINDOW_BYTES};
use shared::edge::{
    client_session, clock, config, deadline, debug_log, env, lease_file, pool_file, spawn, wall_file,
};
use shared::hook::{Arguments, Call};
use shared::pure::pool::Wall;
use shared::pure::session_id::{PromptId, SessionId};
use shared::pure::transcript::{Tail, Turn};
use shared::restart;
use shared::restart::intent::Cause;

/// How long the child looks, in ms.
const LOOK_MS: i64 = 4_000;

const VERB: &str = "--afterwards";
const HOOK: &str = "walled-heal";

/// What is to be looked after.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    root: PathBuf,
    sid: SessionId,
    /// The account and the window that were charged; empty where none was.
    account: String,
    window: String,
    transcript: PathBuf,
    /// When the failure was heard of (ms since 1970).
    seen_at: i64,
    /// The failed turn.
    prompt: PromptId,
    /// The client; 0 where no wake is out.
    pid: i32,
}

impl Order {
    /// The order in the words of the command line, if they are one.
    pub(crate) fn from_words(arguments: &Arguments) -> Option<Self> {
        let [verb, words @ ..] = arguments.rest.as_slice() else {
            return None;
        };
        (verb == VERB).then_some(())?;
        let [sid, account, window, transcript, seen_at, prompt, pid] = words else {
            return None;
        };
        Some(Self {
            root: arguments.root.clone()?,
            sid: SessionId::parse(sid.to_str()?)?,
            account: account.to_str()?.to_owned(),
            window: window.to_str()?.to_owned(),
            transcript: PathBuf::from(transcript),
            seen_at: seen_at.to_str()?.parse().ok()?,
            prompt: PromptId::parse(prompt.to_str()?)?,
            pid: pid.to_str()?.parse().ok()?,
        })
    }

    pub(crate) fn carry_out(&self) {
        deadline::arm(10);
        rustix::process::setsid().ok();
        let Ok(state) = State::open_root(&self.root) else {
            return;
        };
        let give_up = clock::now_ms() + LOOK_MS;
        let mut to_correct = !self.account.is_empty();
        let mut to_watch = self.pid != 0;
        while (to_correct || to_watch) && clock::now_ms() < give_up {
            clock::sleep_ms(50);
            if to_correct && let Some((window, resets_at)) = self.stated_wall() {
                self.correct(&state, &window, resets_at);
                to_correct = false;
            }
            if to_watch && self.is_taken_up(&state) {
                to_watch = false;
            }
        }
        if to_watch && self.is_dialog_open() {
            self.tell_of_dialog(&state);
            deadline::rearm(0);
            if self.dialog_outstays_its_grace(&state) {
                self.restart(&state);
            }
        }
    }

    /// Waits for a person; whether the dialog still stands, with nothing else
    /// changed, when the time is up.
    fn dialog_outstays_its_grace(&self, state: &State) -> bool {
        let grace_s = config::read(state).0.dialog_grace_s;
        let until =
            clock::now_ms().saturating_add(i64::try_from(grace_s).unwrap_or(i64::MAX).saturating_mul(1000));
        if grace_s == 0 {
            return false;
        }
        let mut absent = 0;
        loop {
            clock::sleep_ms(1_000);
            if self.is_taken_up(state) {
                // A person closed the dialog: what the signal said is over.
                signal::clear(state, &self.sid, HOOK).ok();
                return false;
            }
            // Between the dialog's end and the wake's turn lies a moment.
            absent = if self.is_dialog_open() { 0 } else { absent + 1 };
            if absent > 5 {
                return false;
            }
            if absent == 0 && clock::now_ms() >= until {
                return true;
            }
        }
    }

    fn restart(&self, state: &State) {
        let why = "The limit dialog was not closed, and the wake waits behind it";
        let command = format!(
            "close the dialog (Esc), or end the session and run: claude --resume {}",
            self.sid
        );
        let order = restart::Order {
            state,
            sid: &self.sid,
            prompt: &self.prompt,
            failed_at: self.seen_at,
            pid: self.pid,
            transcript: self.transcript.to_str(),
            rung: HOOK,
            cause: Cause::LimitDialog,
            fingerprint: "limit-dialog",
            why,
            told: "the account of this session was changed, and its process restarted past the limit dialog. \
                   It is the same session. Go on with the task exactly where it stopped; do not repeat work that \
                   is already complete.",
            command: &command,
        };
        match order.write() {
            // This child has outlived its hook already: it is the helper itself.
            Ok(()) => {
                restart::helper::run(state, &restart::intent::name(&self.sid));
            }
            Err(why) => debug_log::line(
                state,
                Some(&self.sid),
                HOOK,
                &format!("left to a person: {why:#}"),
            ),
        }
    }

    /// The wall as the transcript's newest failure states it.
    fn stated_wall(&self) -> Option<(String, i64)> {
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

    fn correct(&self, state: &State, window: &str, resets_at: i64) {
        let corrected = pool_file::change(state, 2_000, |pool| {
            if let Some(account) = pool.accounts.get_mut(&self.account)
                && account
                    .walls
                    .get(&self.window)
                    .is_some_and(|wall| wall.seen_at == self.seen_at)
            {
                account.walls.remove(&self.window);
            }
            let wall = Wall {
                seen_at: self.seen_at,
                resets_at: Some(resets_at),
            };
            pool.note_wall(&self.account, window, wall);
        });
        let noted = wall_file::read(state, &self.sid).and_then(|mut file| {
            file.window = Some(window.to_owned());
            file.resets_at = Some(resets_at);
            wall_file::write(state, &self.sid, &file)
        });
        if let Err(why) = corrected.and(noted) {
            debug_log::line(state, Some(&self.sid), HOOK, &format!("not corrected: {why:#}"));
        }
    }

    /// Whether the session took the wake up, or anything else since.
    fn is_taken_up(&self, state: &State) -> bool {
        let lease = lease_file::read_recent(state, &self.sid).ok().flatten();
        lease
            .and_then(|lease| lease.last_prompt)
            .is_some_and(|seen| seen.at > self.seen_at)
    }

    fn is_dialog_open(&self) -> bool {
        let config_dir = client_session::config_dir(self.transcript.to_str());
        let session = config_dir.and_then(|dir| client_session::read(&dir, self.pid).ok().flatten());
        session.is_some_and(|session| {
            session.session_id.as_deref() == Some(self.sid.as_str())
                && session.waiting_for.as_deref() == Some("dialog open")
        })
    }

    fn tell_of_dialog(&self, state: &State) {
        let why = "the client opened a dialog before it took up the wake, which now waits behind it";
        let signal = Signal {
            rung: HOOK.to_owned(),
            at: clock::now_ms(),
            state: "dialog-open".to_owned(),
            why: why.to_owned(),
            person: "Close the dialog in the session (Esc); it then goes on by itself.".to_owned(),
            ..Signal::default()
        };
        let (config, _) = config::read(state);
        let raised = signal::raise(state, &config, &self.sid, signal);
        let told = raised.map_or_else(|trouble| format!("; no signal: {trouble:#}"), |_| String::new());
        debug_log::line(state, Some(&self.sid), HOOK, &format!("{why}{told}"));
    }
}

/// What the child is told of the session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left<'a> {
    /// The account and the window that were charged.
    pub charged: Option<(&'a str, &'a str)>,
    /// Whether a wake is on its way.
    pub is_waked: bool,
}

/// Starts the child; the hook exits in a moment.
pub(crate) fn start(call: &Call, left: Left) {
    let Some(transcript) = call.payload.transcript_path.as_deref() else {
        return;
    };
    let Some(prompt) = call.prompt_id() else {
        return;
    };
    let pid = env::text(env::CLAUDE_PID)
        .filter(|_| left.is_waked)
        .unwrap_or_else(|| "0".to_owned());
    let (account, window) = left.charged.unwrap_or_default();
    let started = own_program().and_then(|own| {
        let mut command = spawn::command(own);
        command.arg("--root").arg(call.state.path()).args([
            VERB,
            call.sid.as_str(),
            account,
            window,
            transcript,
        ]);
        command.args([call.started.to_string(), prompt.as_str().to_owned(), pid]);
        env::without_client_variables(&mut command);
        spawn::start_detached(command)
    });
    if let Err(why) = started {
        call.log(&format!("nobody looks afterwards: {why}"));
    }
}

/// This program. An upgrade under a parked session takes the file's name away, and
/// the path that the system then tells leads nowhere; its own link still works.
fn own_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}
