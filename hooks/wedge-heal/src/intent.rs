//! `session/<sid>/restart.json`: a restart that was decided, and how far it got.
//!
//! Written by the hook before the helper starts, then by the helper before each
//! step that can't be taken back, so that whoever finds it knows what was done.
//! A later run finishes or rolls it back; it never repeats a step.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shared::edge::proc::ProcessId;
use shared::edge::state::{Durability, State};
use shared::edge::tmux::Pane;
use shared::pure::client_argv;
use shared::pure::session_id::{PromptId, SessionId};

use crate::terminal::{Form, Terminal};

/// The format that this version writes.
pub(crate) const FORMAT: u32 = 1;

/// How far it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// Nothing was done yet.
    #[default]
    Intended,
    /// The old process was, or is about to be, asked to end.
    Ending,
    /// The new process was, or is about to be, started.
    Starting,
}

/// The file's content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) format: u32,
    pub(crate) sid: String,
    /// The failed turn: the episode's name.
    pub(crate) prompt_id: String,
    /// When the turn had failed (ms since 1970).
    pub(crate) failed_at: i64,
    /// What two identical failures have in common.
    pub(crate) fingerprint: String,
    /// Why, in a sentence.
    pub(crate) why: String,
    /// The hook that wrote it: it must have ended before anything is done.
    pub(crate) hook: ProcessId,
    /// The client's process.
    pub(crate) old: ProcessId,
    pub(crate) machine: Option<String>,
    pub(crate) pid_namespace: Option<String>,
    /// The client's folder; like all words here in the form of
    /// [`client_argv::to_text`].
    pub(crate) config: String,
    /// The folder of the session's login.
    pub(crate) store: String,
    /// The folder that the client runs in.
    pub(crate) cwd: String,
    /// The new process's command line.
    pub(crate) words: Vec<String>,
    /// tmux's socket and pane.
    pub(crate) socket: String,
    pub(crate) pane: String,
    pub(crate) form: Form,
    /// What a person types to do it by hand.
    pub(crate) command: String,
    pub(crate) step: Step,
    /// When that step was begun (ms since 1970).
    pub(crate) step_at: i64,
    /// What became of it: `restarted`, `stale`, `vetoed`, `exhausted`, `failed`,
    /// `rolled-back`. None while under way.
    pub(crate) outcome: Option<String>,
}

/// The file's name under the root.
pub(crate) fn name(sid: &SessionId) -> String {
    format!("session/{sid}/restart.json")
}

/// The lock of whoever carries it out.
pub(crate) fn lock_name(sid: &SessionId) -> String {
    format!("session/{sid}/restart.lock")
}

impl Intent {
    /// Reads it; `None` where there is none.
    ///
    /// # Errors
    /// Unreadable, not understood, of a newer format, or another session's.
    pub(crate) fn read(state: &State, sid: &SessionId) -> anyhow::Result<Option<Self>> {
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
    pub(crate) fn write(&self, state: &State) -> anyhow::Result<()> {
        let sid = SessionId::parse(&self.sid);
        let sid = sid.ok_or_else(|| anyhow::anyhow!("the intent names no usable session id"))?;
        state.replace(&name(&sid), &serde_json::to_vec_pretty(self)?, Durability::Power)?;
        Ok(())
    }

    pub(crate) fn prompt(&self) -> Option<PromptId> {
        PromptId::parse(&self.prompt_id)
    }

    pub(crate) fn terminal(&self) -> Option<Terminal> {
        let socket = PathBuf::from(client_argv::from_text(&self.socket)?);
        let id = self.pane.clone();
        Some(Terminal {
            pane: Pane { socket, id },
            form: self.form,
        })
    }

    pub(crate) fn path(text: &str) -> Option<PathBuf> {
        client_argv::from_text(text).map(PathBuf::from)
    }

    pub(crate) fn words(&self) -> Option<Vec<OsString>> {
        self.words
            .iter()
            .map(|word| client_argv::from_text(word))
            .collect()
    }
}
