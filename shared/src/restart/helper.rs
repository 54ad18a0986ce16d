//! The restart, by a helper that outlives the client.
//!
//! Claim and intent are on disk before it starts. It proves that the session
//! still stands where the failed turn left it, ends the process, proves it gone
//! and nobody else on the session, starts the same session in the same pane, and
//! waits for it to show. Each step that can't be taken back is written first, so
//! a helper that dies leaves an intent and never a second process. On any doubt
//! it stops, and a signal carries the exact command.

use std::path::Path;

use crate::edge::config::{self, Config};
use crate::edge::episode::Episode;
use crate::edge::lock::{self, Lock};
use crate::edge::proc::{self, Liveness, ProcessId};
use crate::edge::recheck::{self, Subject, Surface};
use crate::edge::state::State;
use crate::edge::wedge_file::{self, Act as Counted, LastHeal};
use crate::edge::{client_lock, client_session, clock, deadline, debug_log, lease_file, signal};
use crate::hook::Call;
use crate::pure::client_argv;
use crate::pure::composer;
use crate::pure::session_id::SessionId;
use crate::pure::tally::{self, MACHINE_RESTARTS, Room};
use rustix::process::{Pid, Signal, kill_process};

use super::hand_up;
use super::intent::{self, Cause, Intent, Step};
use super::pane_host::Pipe;
use super::terminal::{self, Form, Terminal};

/// The helper's own bound, in seconds: waiting for its turn on the machine
/// included.
const HELPER_S: u32 = 900;
/// The hook is gone in a few ms once it started us.
const HOOK_GONE_MS: u64 = 5000;
/// So long after an intent was written its helper may not have begun yet.
const YOUNG_MS: i64 = 10_000;
/// `idle` is written 11 to 90 ms after the hook's start (measured, 2.1.332).
const IDLE_MS: u64 = 2000;
/// SIGTERM took 0.25 s, with a slow hook of the session's own 1.6 s (measured,
/// 2.1.332).
const OLD_GONE_MS: u64 = 20_000;
/// The shell's prompt, or tmux's own notice of the end, comes within moments.
const PANE_BACK_MS: u64 = 5000;
/// A new process showed within 4 s (measured, 2.1.332).
const NEW_SHOWN_MS: u64 = 60_000;
/// A line of the client's limit dialog (2.1.332); `dialog open` alone is also said
/// of others.
const LIMIT_DIALOG: &str = "Stop and wait for limit to reset";
/// A turn of the machine's, or a refresh of the login, is waited for in naps.
const NAP_MS: u64 = 50;
const LONG_NAP_MS: u64 = 1000;

/// What a look at an unfinished restart gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// None is open.
    Nothing,
    /// A helper is at work.
    UnderWay,
}

/// Finishes or rolls back, on paper, what a helper left: a session that runs this
/// hook is alive, so nothing is started or ended here.
///
/// # Errors
/// The outcome can't be written.
pub fn settle(call: &Call) -> anyhow::Result<Settled> {
    let mut intent = match Intent::read(call.state, &call.sid) {
        Ok(Some(intent)) if intent.outcome.is_none() => intent,
        Ok(_) => return Ok(Settled::Nothing),
        Err(why) => {
            call.log(&format!("unknown: a restart's intent can't be read: {why:#}"));
            return Ok(Settled::Nothing);
        }
    };
    let Some(held) = lock::take(call.state, &intent::lock_name(&call.sid), 0)? else {
        return Ok(Settled::UnderWay);
    };
    // The helper takes the lock a moment after its hook has ended.
    if intent.step == Step::Intended && clock::now_ms() - intent.step_at < YOUNG_MS {
        return Ok(Settled::UnderWay);
    }
    let (outcome, why) = match intent.old.liveness() {
        Liveness::Alive => ("rolled-back", "the helper died before it ended the process"),
        Liveness::Gone => ("restarted", "the session runs in a new process"),
        Liveness::Unknown => return Ok(Settled::Nothing),
    };
    finish(call.state, &call.sid, &mut intent, outcome, why)?;
    drop(held);
    Ok(Settled::Nothing)
}

/// The intent of that file name.
pub(super) fn named(state: &State, name: &str) -> Option<(SessionId, Intent)> {
    let sid = name.strip_prefix("session/")?.strip_suffix("/restart.json")?;
    let sid = SessionId::parse(sid)?;
    let intent = Intent::read(state, &sid).ok().flatten()?;
    Some((sid, intent))
}

/// `--restart INTENT`: carries it out, from whatever step it stands at.
pub fn run(state: &State, name: &str) -> i32 {
    deadline::arm(HELPER_S);
    let Some((sid, intent)) = named(state, name) else {
        return 1;
    };
    let (config, _) = config::read(state);
    let mut helper = Helper {
        state,
        sid,
        intent,
        config,
        held: None,
    };
    match helper.carry_out() {
        Ok(()) => 0,
        Err(error) => {
            helper.log(&format!("failed: {error:#}"));
            1
        }
    }
}

/// Why it went no further.
enum Halt {
    /// The session went on or is a person's now: nothing to say to anybody.
    Stale(String),
    /// Something was in doubt: a person should look.
    Doubt(String),
    /// The session's restarts are used up.
    Exhausted,
    /// The intent is settled, or another helper's: nothing must be written.
    NotOurs(String),
}

/// Whether this is the moment.
enum Ready {
    Yes,
    /// Something is in the way that passes by itself.
    NotYet,
}

struct Helper<'a> {
    state: &'a State,
    sid: SessionId,
    intent: Intent,
    config: Config,
    /// Held from the proof to the outcome.
    held: Option<Lock>,
}

impl Helper<'_> {
    fn log(&self, text: &str) {
        debug_log::line(self.state, Some(&self.sid), &self.intent.rung, text);
    }

    fn carry_out(&mut self) -> anyhow::Result<()> {
        // While the hook lives we are in the client's tree, and die with it.
        if self.intent.hook.pid != proc::own_pid() {
            wait_gone(self.intent.hook, HOOK_GONE_MS);
        }
        let result = loop {
            match self.get_ready() {
                Ok(Ready::NotYet) => {
                    self.held = None;
                    clock::sleep_ms(LONG_NAP_MS);
                }
                Ok(Ready::Yes) => break self.act(),
                Err(halt) => break Err(halt),
            }
        };
        let (outcome, why, word) = match result {
            Ok(why) => {
                if self.intent.cause == Cause::LimitDialog {
                    // What it said of the dialog is over.
                    signal::clear(self.state, &self.sid, &self.intent.rung).ok();
                }
                ("restarted", why, None)
            }
            Err(Halt::NotOurs(why)) => {
                self.log(&format!("no restart: {why}"));
                return Ok(());
            }
            Err(Halt::Stale(why)) => ("stale", why, None),
            Err(Halt::Exhausted) => (
                "exhausted",
                "the restarts of the last 24 hours are used up".to_owned(),
                Some("exhausted"),
            ),
            Err(Halt::Doubt(why)) if self.intent.step == Step::Intended => {
                ("vetoed", why, Some("needs-person"))
            }
            Err(Halt::Doubt(why)) => ("failed", why, Some("needs-person")),
        };
        self.log(&format!("{outcome}: {why}"));
        if let Some(word) = word {
            let why = format!("{} The restart was not made: {why}.", self.intent.why);
            let person = format!("Restart the session by hand: {}", self.intent.command);
            hand_up::raise(
                self.state,
                &self.config,
                &self.sid,
                &self.intent.rung,
                word,
                &why,
                &person,
            )?;
        }
        finish(self.state, &self.sid, &mut self.intent, outcome, &why)?;
        Ok(())
    }

    /// Takes the lock and proves that this is the moment. Nothing is held while
    /// waiting for a better one.
    fn get_ready(&mut self) -> Result<Ready, Halt> {
        let doubt = |why: anyhow::Error| Halt::Doubt(format!("{why:#}"));
        let name = intent::lock_name(&self.sid);
        let held = lock::take(self.state, &name, 0).map_err(|why| Halt::NotOurs(why.to_string()))?;
        if held.is_none() {
            return Err(Halt::NotOurs("another helper is at work".into()));
        }
        self.held = held;
        // Whoever held the lock before may have brought it further.
        let intent = Intent::read(self.state, &self.sid).map_err(|why| Halt::NotOurs(format!("{why:#}")))?;
        self.intent = intent.ok_or_else(|| Halt::NotOurs("the intent is gone".into()))?;
        if let Some(outcome) = &self.intent.outcome {
            return Err(Halt::NotOurs(format!("it was settled already: {outcome}")));
        }
        let is_here = self.intent.machine == proc::machine_id()
            && self.intent.pid_namespace == proc::pid_namespace(proc::own_pid());
        if !is_here {
            return Err(Halt::NotOurs("it is another machine's or pid namespace's".into()));
        }
        if self.intent.step != Step::Intended {
            return Ok(Ready::Yes); // The acts themselves look what is left to do.
        }
        self.prove_session()?;
        self.prove_pane()?;
        if self.is_login_refreshing() {
            return Ok(Ready::NotYet);
        }
        let now = clock::now_ms();
        if wedge_file::spend_on_machine(self.state, &MACHINE_RESTARTS, now).map_err(doubt)? != Room::Free {
            return Ok(Ready::NotYet);
        }
        let limits = tally::session_restarts(self.config.restarts_per_day_max);
        let last = LastHeal {
            act: "restart".to_owned(),
            fingerprint: self.intent.fingerprint.clone(),
            at: now,
        };
        let (counted, last) = match self.intent.cause {
            Cause::Wedge => (Counted::Restart, Some(&last)),
            Cause::LimitDialog => (Counted::WallRestart, None),
        };
        match wedge_file::spend(self.state, &self.sid, counted, &limits, now, last) {
            Ok(Room::Free) => Ok(Ready::Yes),
            Ok(Room::FullUntil(_)) => Err(Halt::Exhausted),
            Err(why) => Err(doubt(why)),
        }
    }

    /// Same session, same process, idle, nobody's turn.
    fn prove_session(&self) -> Result<(), Halt> {
        let config = Intent::path(&self.intent.config).ok_or_else(unreadable)?;
        if self.intent.old.liveness() != Liveness::Alive {
            return Err(Halt::Stale("the process is gone already".into()));
        }
        let prompt = self.intent.prompt();
        let surface = recheck::look(&Subject {
            state: self.state,
            sid: &self.sid,
            prompt_id: prompt.as_ref().map(crate::pure::session_id::PromptId::as_str),
            config: &config,
            pid: self.intent.old.pid,
            since: self.intent.failed_at,
        })
        .map_err(Halt::Stale)?;
        if surface == Surface::Dialog {
            return match self.intent.cause {
                Cause::LimitDialog => self.prove_lone(&config),
                Cause::Wedge => Err(Halt::Stale("a dialog is open before a person".into())),
            };
        }
        if self.intent.cause == Cause::LimitDialog {
            return Err(Halt::Stale("the dialog was closed; the wake goes on".into()));
        }
        // To wake beside a turn is a nuisance, to end its process a loss. The
        // failed turn's own mark goes within moments.
        let is_idle = || {
            let session = client_session::read(&config, self.intent.old.pid);
            session
                .is_ok_and(|session| session.is_some_and(|session| session.status.as_deref() == Some("idle")))
        };
        if !wait_until(IDLE_MS, is_idle) {
            return Err(Halt::Stale("the session is not idle".into()));
        }
        self.prove_lone(&config)
    }

    /// The process is the lease's, and the only one on the session.
    fn prove_lone(&self, config: &Path) -> Result<(), Halt> {
        let lease = lease_file::read(self.state, &self.sid).ok().flatten();
        let host = lease.and_then(|lease| lease.host).filter(|host| host.pid != 0);
        if let Some(host) = host
            && (host.pid, host.start) != (self.intent.old.pid, self.intent.old.start)
        {
            return Err(Halt::Stale("the lease names another process".into()));
        }
        match others_on(config, &self.sid, self.intent.old) {
            Ok(others) => others.first().map_or(Ok(()), |other| {
                let why = format!("pid {} has the session too", other.pid);
                Err(Halt::Doubt(why))
            }),
            Err(why) => Err(Halt::Doubt(why)),
        }
    }

    /// The pane is still the client's, and nothing half-typed stands in it.
    fn prove_pane(&self) -> Result<Terminal, Halt> {
        let terminal = self.intent.terminal().ok_or_else(unreadable)?;
        let now = terminal::of(self.intent.old.pid).map_err(Halt::Doubt)?;
        if now != terminal {
            return Err(Halt::Doubt("the client's pane is another one now".into()));
        }
        let screen = terminal.pane.capture();
        let screen = screen.map_err(|why| Halt::Doubt(format!("the pane can't be seen: {why:#}")))?;
        if self.intent.cause == Cause::LimitDialog && !screen.contains(LIMIT_DIALOG) {
            return Err(Halt::Doubt(
                "the open dialog is not the client's own about the limit".into(),
            ));
        }
        match composer::holds_text(&screen) {
            Some(true) => Err(Halt::Doubt(
                "the composer holds text that was not sent; it is left as it is".into(),
            )),
            Some(false) | None => Ok(terminal),
        }
    }

    /// A process that dies in the middle of a token refresh loses the login.
    fn is_login_refreshing(&self) -> bool {
        let Some(store) = Intent::path(&self.intent.store) else {
            return false;
        };
        let Some(store) = fs_err::canonicalize(store).ok() else {
            return false;
        };
        client_lock::is_live(&store)
    }

    fn begin(&mut self, step: Step) -> Result<(), Halt> {
        self.intent.step = step;
        self.intent.step_at = clock::now_ms();
        let written = self.intent.write(self.state);
        written.map_err(|why| Halt::Doubt(format!("the step can't be recorded: {why:#}")))
    }

    /// From the step that the intent stands at to the new process.
    fn act(&mut self) -> Result<String, Halt> {
        let terminal = self.intent.terminal().ok_or_else(unreadable)?;
        if self.intent.step < Step::Starting {
            let replaced = self.replace(&terminal);
            if terminal.form == Form::PaneCommand {
                terminal.pane.set_remain(None).ok();
            }
            replaced?;
        }
        let new = self.wait_for_new()?;
        Ok(format!(
            "pid {} ended, pid {} has the session",
            self.intent.old.pid, new.pid
        ))
    }

    /// Ends the old process and starts the new one.
    fn replace(&mut self, terminal: &Terminal) -> Result<(), Halt> {
        let environ = proc::environ(self.intent.old.pid).filter(|_| self.is_old_alive());
        if terminal.form == Form::PaneCommand && self.is_old_alive() {
            // Else the pane would go with its process.
            let kept = terminal.pane.set_remain(Some(true));
            kept.map_err(|why| Halt::Doubt(format!("the pane can't be kept: {why:#}")))?;
        }
        self.end_old()?;
        self.prove_free()?;
        self.begin(Step::Starting)?;
        self.start(terminal, environ.as_deref())
    }

    fn is_old_alive(&self) -> bool {
        self.intent.old.liveness() != Liveness::Gone
    }

    fn end_old(&mut self) -> Result<(), Halt> {
        // A helper that died in this step may have asked already, or not. What
        // was asked ends; what was not may be at work again by now.
        if self.intent.step == Step::Ending && wait_gone(self.intent.old, OLD_GONE_MS) {
            return Ok(());
        }
        // The last look before what can't be taken back.
        self.prove_session()?;
        self.prove_pane()?;
        self.begin(Step::Ending)?;
        if self.is_old_alive()
            && let Some(pid) = Pid::from_raw(self.intent.old.pid)
        {
            let sent = kill_process(pid, Signal::TERM);
            sent.map_err(|why| Halt::Doubt(format!("the process can't be ended: {why}")))?;
        }
        if wait_gone(self.intent.old, OLD_GONE_MS) {
            Ok(())
        } else {
            // SIGKILL is for a proven hang alone, and a busy one is none.
            Err(Halt::Doubt(format!(
                "pid {} did not end within {} s",
                self.intent.old.pid,
                OLD_GONE_MS / 1000
            )))
        }
    }

    /// Nobody has the session now, and nobody switched it off meanwhile.
    fn prove_free(&self) -> Result<(), Halt> {
        let config = Intent::path(&self.intent.config).ok_or_else(unreadable)?;
        if self.state.exists("off") || recheck::is_stopped(self.state, &self.sid, Some(&config)) {
            return Err(Halt::Doubt(
                "a person switched it off or PAUSED it while it ended".into(),
            ));
        }
        match others_on(&config, &self.sid, self.intent.old) {
            Ok(others) => others.first().map_or(Ok(()), |other| {
                let why = format!("pid {} has taken the session up", other.pid);
                Err(Halt::Stale(why))
            }),
            Err(why) => Err(Halt::Doubt(why)),
        }
    }

    fn start(&self, terminal: &Terminal, environ: Option<&[std::ffi::OsString]>) -> Result<(), Halt> {
        let doubt = |why: anyhow::Error| Halt::Doubt(format!("{why:#}"));
        let words = self.intent.words().ok_or_else(unreadable)?;
        let cwd = Intent::path(&self.intent.cwd).ok_or_else(unreadable)?;
        if !cwd.is_dir() {
            return Err(Halt::Doubt(format!("the folder {} is gone", cwd.display())));
        }
        match terminal.form {
            Form::Shell(shell) => {
                let is_back = wait_until(PANE_BACK_MS, || {
                    shell.liveness() == Liveness::Alive && proc::is_in_foreground(shell.pid) == Some(true)
                });
                let view = terminal.pane.look().map_err(doubt)?;
                if !is_back || view.is_in_mode || proc::terminal(shell.pid) != Some(view.tty) {
                    return Err(Halt::Doubt("the shell did not come back to its prompt".into()));
                }
                let line = client_argv::shell_line(&words);
                if line.len() > LINE_BYTES_MAX {
                    return Err(Halt::Doubt("the command line is too long to be typed".into()));
                }
                terminal.pane.type_line(&line).map_err(doubt)
            }
            Form::PaneCommand => {
                // tmux notices the end of the process a moment after it.
                let is_dead = || terminal.pane.look().is_ok_and(|view| view.is_dead);
                if !wait_until(PANE_BACK_MS, is_dead) {
                    return Err(Halt::Doubt("the pane runs something else now".into()));
                }
                let program = proc::executable(proc::own_pid());
                let program = program.filter(|path| path.is_file());
                let program = program.ok_or_else(|| Halt::Doubt("our own program is gone".into()))?;
                let pipe = Pipe::make(self.state, &self.sid);
                let pipe = pipe.map_err(|why| Halt::Doubt(format!("no pipe can be made: {why}")))?;
                let host = [
                    program.into_os_string(),
                    "--root".into(),
                    self.state.path().as_os_str().to_owned(),
                    "--host".into(),
                    intent::name(&self.sid).into(),
                ];
                terminal.pane.respawn(&cwd, &host).map_err(doubt)?;
                if let Some(environ) = environ
                    && let Err(why) = pipe.hand_over(environ)
                {
                    self.log(&format!("the old environment was not handed over: {why}"));
                }
                Ok(())
            }
        }
    }

    /// The one new process on the session, as the client registers it.
    fn wait_for_new(&self) -> Result<ProcessId, Halt> {
        let config = Intent::path(&self.intent.config).ok_or_else(unreadable)?;
        let mut found = Vec::new();
        wait_until(NEW_SHOWN_MS, || {
            found = others_on(&config, &self.sid, self.intent.old).unwrap_or_default();
            !found.is_empty()
        });
        match found.as_slice() {
            [new] => Ok(*new),
            [] => Err(Halt::Doubt(format!(
                "no new process showed within {} s",
                NEW_SHOWN_MS / 1000
            ))),
            many => Err(Halt::Doubt(format!("{} processes have the session", many.len()))),
        }
    }
}

/// The longest line that is typed: a terminal in its plain mode cuts at 4096.
const LINE_BYTES_MAX: usize = 4000;

fn unreadable() -> Halt {
    Halt::Doubt("the intent can't be read".into())
}

/// Live processes other than the old one that the client registers with this
/// session.
fn others_on(config: &Path, sid: &SessionId, old: ProcessId) -> Result<Vec<ProcessId>, String> {
    let folder = config.join("sessions");
    let entries = match fs_err::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|why| why.to_string())?,
    };
    let mut others = Vec::new();
    for entry in entries {
        let name = entry.map_err(|why| why.to_string())?.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_suffix(".json")?.parse().ok());
        let Some(pid) = pid else { continue };
        let session = match client_session::read(config, pid) {
            Ok(Some(session)) => session,
            Ok(None) => continue,
            // Half written at the moment: whose it is can't be told.
            Err(_) if ProcessId::of(pid).is_none() => continue,
            Err(why) => return Err(why.to_string()),
        };
        let Some(process) = ProcessId::of(pid).filter(|process| *process != old) else {
            continue;
        };
        // A client that was killed leaves its entry behind, and pids are reused.
        let is_same = session
            .proc_start
            .as_deref()
            .is_none_or(|start| start == process.start.to_string());
        if is_same
            && session.session_id.as_deref() == Some(sid.as_str())
            && process.liveness() == Liveness::Alive
        {
            others.push(process);
        }
    }
    Ok(others)
}

fn wait_gone(process: ProcessId, limit_ms: u64) -> bool {
    wait_until(limit_ms, || process.liveness() == Liveness::Gone)
}

fn wait_until(limit_ms: u64, mut is_so: impl FnMut() -> bool) -> bool {
    let mut waited = 0;
    while !is_so() {
        if waited >= limit_ms {
            return false;
        }
        clock::sleep_ms(NAP_MS);
        waited += NAP_MS;
    }
    true
}

/// Writes the outcome to the episode and to the intent.
fn finish(
    state: &State,
    sid: &SessionId,
    intent: &mut Intent,
    outcome: &str,
    why: &str,
) -> anyhow::Result<()> {
    let episode = intent
        .prompt()
        .and_then(|prompt| Episode::reopen(state, sid, &prompt));
    if let Some(mut episode) = episode {
        episode.finish(outcome, why, clock::now_ms())?;
    }
    // Last of all: what dies before this is finished again.
    intent.outcome = Some(outcome.to_owned());
    intent.write(state)?;
    Ok(())
}
