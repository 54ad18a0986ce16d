//! Background sessions: `claude --bg`, and the commands that manage them.

use std::time::Duration;

use serde_json::Value;

use super::NO_QUESTIONS;
use super::home::Home;
use super::processes::alive;
use super::registry::SessionFile;
use super::wait::{PATIENCE, wait_for, wait_until};
use crate::files::read_json;

/// A background session by its short id. The client's background service ends
/// with the home.
#[derive(Debug)]
pub struct Background<'home> {
    home: &'home Home,
    /// The first eight digits of the session id.
    pub id: String,
}

impl<'home> Background<'home> {
    /// Starts one that asks no permission questions.
    pub fn start(home: &'home Home, further_arguments: &[&str], prompt: &str) -> Background<'home> {
        let arguments = [&["--bg", NO_QUESTIONS], further_arguments, &[prompt]].concat();
        let output = home.run_claude(&arguments, PATIENCE);
        let id = output.stdout.lines().find_map(|line| {
            let (_, rest) = line.split_once("backgrounded · ")?;
            Some(rest.split_whitespace().next()?.to_owned())
        });
        let id = id.unwrap_or_else(|| panic!("no background session was started: {output:?}"));
        Background { home, id }
    }

    /// `claude agents --json --all`, this session's row.
    pub fn row(&self) -> Option<Value> {
        let output = self.home.run_claude(&["agents", "--json", "--all"], PATIENCE);
        let rows: Vec<Value> = serde_json::from_str(&output.stdout).ok()?;
        rows.into_iter()
            .find(|row| row.get("id").and_then(Value::as_str) == Some(&self.id))
    }

    /// The client's own state file of the job.
    pub fn state(&self) -> Value {
        let path = self.home.config().join("jobs").join(&self.id).join("state.json");
        read_json(&path).unwrap_or(Value::Null)
    }

    /// The live process of this session, if there is one.
    pub fn session(&self) -> Option<SessionFile> {
        let mut sessions = self.home.sessions().into_iter();
        sessions.find(|session| session.session_id.starts_with(&self.id))
    }

    /// Waits until its process is in this status.
    pub fn wait_session(&self, status: &str, patience: Duration) -> SessionFile {
        let found = wait_for(patience, || {
            self.session().filter(|session| session.status == status)
        });
        found.unwrap_or_else(|| panic!("{} is not {status:?}: {:?}", self.id, self.session()))
    }

    /// `claude stop`, until the process is gone.
    pub fn stop(&self) {
        let before = self.session();
        let output = self.home.run_claude(&["stop", &self.id], PATIENCE);
        assert_eq!(output.code, Some(0), "{output:?}");
        // The register forgets the session a little before its process is gone.
        let gone = || before.as_ref().is_none_or(|session| !alive(session.pid));
        assert!(
            wait_until(PATIENCE, gone),
            "{} still runs after claude stop",
            self.id
        );
    }

    /// `claude respawn`: the same session in a new process, which waits for a prompt.
    pub fn respawn(&self) -> SessionFile {
        let output = self.home.run_claude(&["respawn", &self.id], PATIENCE);
        assert_eq!(output.code, Some(0), "{output:?}");
        self.wait_session("idle", PATIENCE)
    }
}
