//! The client's own register of live processes: `sessions/<pid>.json`.

use serde_json::Value;

use super::home::Home;
use super::processes::alive;
use super::wait::wait_for;
use crate::files::read_json;

/// One entry of the register.
#[derive(Debug, Clone)]
pub struct SessionFile {
    /// The client process.
    pub pid: u32,
    /// The conversation it holds now.
    pub session_id: String,
    /// `idle`, `busy`, `waiting`; "" before the first one is written.
    pub status: String,
    /// The dialog or question that it waits for, "" for none.
    pub waiting_for: String,
    /// `interactive` or `bg`.
    pub kind: String,
    /// When the status was written, in epoch milliseconds.
    pub status_updated_at_ms: u64,
}

impl SessionFile {
    fn of(value: &Value) -> Option<SessionFile> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        Some(SessionFile {
            pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
            session_id: text("sessionId"),
            status: text("status"),
            waiting_for: text("waitingFor"),
            kind: text("kind"),
            status_updated_at_ms: value.get("statusUpdatedAt").and_then(Value::as_u64).unwrap_or(0),
        })
    }
}

impl Home {
    /// The live sessions of this home, oldest pid first.
    pub fn sessions(&self) -> Vec<SessionFile> {
        let Ok(entries) = fs_err::read_dir(self.config().join("sessions")) else {
            return Vec::new();
        };
        let files = entries.flatten().map(|entry| entry.path());
        let values = files
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| read_json(&path));
        let sessions = values.filter_map(|value| SessionFile::of(&value));
        let mut sessions: Vec<SessionFile> = sessions.filter(|session| alive(session.pid)).collect();
        sessions.sort_by_key(|session| session.pid);
        sessions
    }

    /// Waits for exactly one live session, in this status.
    pub fn wait_session(&self, status: &str, patience: std::time::Duration) -> SessionFile {
        let found = wait_for(patience, || {
            let mut sessions = self.sessions();
            let session = sessions.pop()?;
            (sessions.is_empty() && session.status == status).then_some(session)
        });
        found.unwrap_or_else(|| {
            panic!(
                "no single session is {status:?} within {patience:?}: {:?}",
                self.sessions()
            )
        })
    }
}
