//! `session/<sid>/restart.json`: a restart that was decided, and how far it got.
//!
//! Written by the hook before the helper starts, then by the helper before each
//! step that can't be taken back, so that whoever finds it knows what was done.
//! A later run finishes or rolls it back; it never repeats a step.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::edge::proc::ProcessId;
use crate::edge::state::{Durability, State};
use crate::edge::tmux::Pane;
use crate::pure::client_argv;
use crate::pure::session_id::{PromptId, SessionId};
use serde::{Deserialize, Serialize};

use super::terminal::{Form, Terminal};

/// The format that this version writes.
pub const FORMAT: u32 = 1;

/// How far it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Nothing was done yet.
    #[default]
    Intended,
    /// The old process was, or is about to be, asked to end.
    Ending,
    /// The new process was, or is about to be, started.
    Starting,
}

/// What a restart is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The process can't go on (rung 1).
    #[default]
    Wedge,
    /// The account was left, and the client's limit dialog stands before the wake
    /// (rung 2; a cap of its own, shown beside rung 1's).
    LimitDialog,
}

fn wedge_heal() -> String {
    "wedge-heal".to_owned()
}

/// The file's content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// [`FORMAT`].
    pub format: u32,
    /// The session.
    pub sid: String,
    /// The failed turn: the episode's name.
    pub prompt_id: String,
    /// When the turn had failed (ms since 1970).
    pub failed_at: i64,
    /// The hook that decided it; its name in log lines and signals.
    #[serde(default = "wedge_heal")]
    pub rung: String,
    /// What it is for.
    #[serde(default)]
    pub cause: Cause,
    /// What two identical failures have in common.
    pub fingerprint: String,
    /// Why, in a sentence.
    pub why: String,
    /// The hook that wrote it: it must have ended before anything is done.
    pub hook: ProcessId,
    /// The client's process.
    pub old: ProcessId,
    /// The machine's id.
    pub machine: Option<String>,
    /// The pid namespace that the pids count in.
    pub pid_namespace: Option<String>,
    /// The client's folder; like all words here in the form of
    /// [`client_argv::to_text`].
    pub config: String,
    /// The folder of the session's login.
    pub store: String,
    /// The folder that the client runs in.
    pub cwd: String,
    /// The new process's command line.
    pub words: Vec<String>,
    /// tmux's socket.
    pub socket: String,
    /// tmux's pane.
    pub pane: String,
    /// How the client was started in it.
    pub form: Form,
    /// What a person types to do it by hand.
    pub command: String,
    /// How far it got.
    pub step: Step,
    /// When that step was begun (ms since 1970).
    pub step_at: i64,
    /// What became of it: `restarted`, `stale`, `vetoed`, `exhausted`, `failed`,
    /// `rolled-back`. None while under way.
    pub outcome: Option<String>,
}

/// The file's name under the root.
pub fn name(sid: &SessionId) -> String {
    format!("session/{sid}/restart.json")
}

/// The lock of whoever carries it out.
pub fn lock_name(sid: &SessionId) -> String {
    format!("session/{sid}/restart.lock")
}

impl Intent {
    /// Reads it; `None` where there is none.
    ///
    /// # Errors
    /// Unreadable, not understood, of a newer format, or another session's.
    pub fn read(state: &State, sid: &SessionId) -> anyhow::Result<Option<Self>> {
        let Some(bytes) = state.read(&name(sid))? else {
            return Ok(None);
        };
        let intent: Self = serde_json::from_slice(&bytes)?;
        anyhow::ensure!(
            intent.format <= FORMAT,
            "{} has format {}",
            name(sid),
            intent.format
        );
        anyhow::ensure!(intent.sid == sid.as_str(), "{} is another session's", name(sid));
        Ok(Some(intent))
    }

    /// Writes it so that it survives a power cut.
    ///
    /// # Errors
    /// As the system says; then the step must not be taken.
    pub fn write(&self, state: &State) -> anyhow::Result<()> {
        let sid = SessionId::parse(&self.sid);
        let sid = sid.ok_or_else(|| anyhow::anyhow!("the intent names no usable session id"))?;
        state.replace(&name(&sid), &serde_json::to_vec_pretty(self)?, Durability::Power)?;
        Ok(())
    }

    /// The failed turn.
    pub fn prompt(&self) -> Option<PromptId> {
        PromptId::parse(&self.prompt_id)
    }

    /// The pane.
    pub fn terminal(&self) -> Option<Terminal> {
        let socket = PathBuf::from(client_argv::from_text(&self.socket)?);
        let id = self.pane.clone();
        Some(Terminal {
            pane: Pane { socket, id },
            form: self.form,
        })
    }

    /// A path in the form of [`client_argv::to_text`].
    pub fn path(text: &str) -> Option<PathBuf> {
        client_argv::from_text(text).map(PathBuf::from)
    }

    /// The new process's command line.
    pub fn words(&self) -> Option<Vec<OsString>> {
        self.words
            .iter()
            .map(|word| client_argv::from_text(word))
            .collect()
    }
}
