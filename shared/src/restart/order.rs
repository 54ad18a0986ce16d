//! What a hook orders, and the intent that it becomes.

use std::path::Path;

use anyhow::Context;

use super::intent::{self, Cause, Intent, Step};
use super::terminal;
use crate::edge::proc::{self, ProcessId};
use crate::edge::state::State;
use crate::edge::{client_session, env, recheck, spawn};
use crate::pure::client_argv::{ClientArgv, to_text};
use crate::pure::session_id::{PromptId, SessionId};

/// A restart, as a hook orders it.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The state root.
    pub state: &'a State,
    /// The session.
    pub sid: &'a SessionId,
    /// The failed turn.
    pub prompt: &'a PromptId,
    /// When it had failed (ms since 1970).
    pub failed_at: i64,
    /// The client's process.
    pub pid: i32,
    /// The session's transcript: it tells the client's folder.
    pub transcript: Option<&'a str>,
    /// The hook that orders it.
    pub rung: &'a str,
    /// What it is for.
    pub cause: Cause,
    /// What two identical failures have in common.
    pub fingerprint: &'a str,
    /// Why, in a sentence, for log and signal.
    pub why: &'a str,
    /// What the session is told when it goes on.
    pub told: &'a str,
    /// What a person types to do it by hand.
    pub command: &'a str,
}

impl Order<'_> {
    /// Puts the intent on disk.
    ///
    /// # Errors
    /// The process, its command line or its pane can't be read, or the intent
    /// can't be written: then nothing must be done.
    pub fn write(&self) -> anyhow::Result<()> {
        let pid = self.pid;
        let old = ProcessId::of(pid).context("the client's process can't be read")?;
        let hook = ProcessId::of(proc::own_pid()).context("our own process can't be read")?;
        let found = terminal::of(pid).map_err(anyhow::Error::msg)?;
        let argv = ClientArgv::parse(&proc::argv(pid).unwrap_or_default()).map_err(anyhow::Error::msg)?;
        let cwd = proc::cwd(pid).context("the client's folder can't be read")?;
        let config =
            client_session::config_dir(self.transcript).context("the client's own folder is not known")?;
        let store = env::path(env::CLAUDE_SECURESTORAGE_CONFIG_DIR).unwrap_or_else(|| config.clone());
        let words = argv.resume(self.sid.as_str(), Some(&recheck::stamped_by("rungs", self.told)));
        let text = |path: &Path| to_text(path.as_os_str());
        let intent = Intent {
            format: intent::FORMAT,
            sid: self.sid.as_str().to_owned(),
            prompt_id: self.prompt.as_str().to_owned(),
            failed_at: self.failed_at,
            rung: self.rung.to_owned(),
            cause: self.cause,
            fingerprint: self.fingerprint.to_owned(),
            why: self.why.to_owned(),
            hook,
            old,
            machine: proc::machine_id(),
            pid_namespace: proc::pid_namespace(pid),
            config: text(&config),
            store: text(&store),
            cwd: text(&cwd),
            words: words.iter().map(|word| to_text(word)).collect(),
            socket: text(&found.pane.socket),
            pane: found.pane.id,
            form: found.form,
            command: self.command.to_owned(),
            step: Step::Intended,
            step_at: crate::edge::clock::now_ms(),
            outcome: None,
        };
        intent.write(self.state)
    }

    /// Starts the helper that carries the written intent out, once this hook has
    /// ended: what is alive in the client's tree dies with the client.
    ///
    /// # Errors
    /// It can't be started.
    pub fn start_helper(&self) -> anyhow::Result<()> {
        let mut helper = spawn::command("/proc/self/exe");
        helper
            .arg("--root")
            .arg(self.state.path())
            .arg("--restart")
            .arg(intent::name(self.sid))
            .current_dir("/");
        env::without_client_variables(&mut helper);
        spawn::start_detached(helper).context("the helper can't be started")?;
        Ok(())
    }
}
