//! The client's transcript of a session: JSON lines, newest last.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::home::Home;
use super::wait::wait_until;
use crate::files::read_json_lines;

/// One session's transcript as read just now.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// The file.
    pub path: PathBuf,
    /// Its whole lines.
    pub lines: Vec<Value>,
}

impl Transcript {
    /// The lines of failed turns.
    pub fn failures(&self) -> Vec<&Value> {
        let failed = |line: &&Value| line.get("isApiErrorMessage") == Some(&Value::Bool(true));
        self.lines.iter().filter(failed).collect()
    }

    /// The texts of the assistant, failed turns left out.
    pub fn answers(&self) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| {
            line.get("type").and_then(Value::as_str) == Some("assistant")
                && line.get("isApiErrorMessage").is_none()
        });
        let parts = lines.filter_map(|line| line.pointer("/message/content")?.as_array());
        let texts = parts.flatten().filter_map(|part| part.get("text")?.as_str());
        texts.map(str::to_owned).collect()
    }
}

impl Home {
    /// The transcript files of main conversations, in any project folder.
    pub fn transcript_paths(&self) -> Vec<PathBuf> {
        let folders = fs_err::read_dir(self.config().join("projects"));
        let folders = folders.into_iter().flatten().flatten();
        let files = folders
            .filter_map(|folder| fs_err::read_dir(folder.path()).ok())
            .flatten()
            .flatten();
        let paths = files.map(|file| file.path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        paths.sort();
        paths
    }

    /// Waits for so many failed turns in a session's transcript. The line of a
    /// failed turn comes to disk up to 210 ms after the screen and the hooks
    /// (measured, 2.1.332).
    pub fn wait_failures(&self, session_id: &str, count: usize, patience: Duration) -> Vec<Value> {
        let failures = || -> Vec<Value> {
            let transcript = self.transcript(session_id);
            transcript.failures().into_iter().cloned().collect()
        };
        let came = wait_until(patience, || failures().len() >= count);
        assert!(
            came,
            "not {count} failed turns within {patience:?} in {session_id}"
        );
        failures()
    }

    /// Waits until the newest answer in a session's transcript is this; for the
    /// same reason.
    pub fn wait_answer(&self, session_id: &str, answer: &str, patience: Duration) {
        let newest = || self.transcript(session_id).answers().pop();
        let came = wait_until(patience, || newest().as_deref() == Some(answer));
        assert!(
            came,
            "the newest answer of {session_id} is {:?}, not {answer:?}",
            newest()
        );
    }

    /// The transcript of a session; empty when there is none yet.
    pub fn transcript(&self, session_id: &str) -> Transcript {
        let paths = self.transcript_paths();
        let path = paths
            .into_iter()
            .find(|path| path.file_stem().is_some_and(|stem| stem == session_id));
        let path = path.unwrap_or_default();
        Transcript {
            lines: read_json_lines(&path),
            path,
        }
    }
}
