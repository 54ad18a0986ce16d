//! The client's own register of its processes: `<config>/sessions/<pid>.json`.
//!
//! It says which session a process hosts now (a `/clear` changes it) and whether
//! it is idle, busy or waiting on a person. Measured on 2.1.332: made a moment
//! after the start, taken away before SessionEnd hooks run, left behind by a
//! SIGKILL. `busy` at the start of a StopFailure hook may still be the failed
//! turn's own; `statusUpdatedAt` tells.

use std::io;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::Deserialize;

use super::env;

/// One process, as the client registered it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientSession {
    /// The session it hosts now.
    pub session_id: Option<String>,
    /// `idle`, `busy` or `waiting`.
    pub status: Option<String>,
    /// `permission prompt`, `dialog open`, …
    pub waiting_for: Option<String>,
    /// When `status` last changed (ms since 1970).
    pub status_updated_at: Option<i64>,
    /// Start time of the process, as text.
    pub proc_start: Option<String>,
    /// The client's version.
    pub version: Option<String>,
    /// `interactive` or `bg`.
    pub kind: Option<String>,
    /// Short id of a background session.
    pub job_id: Option<String>,
}

const BYTES_MAX: u64 = 64 << 10;

/// The client's folder, from where a transcript lies
/// (`<config>/projects/<project>/<sid>.jsonl`), else from the environment.
pub fn config_dir(transcript_path: Option<&str>) -> Option<PathBuf> {
    let from_transcript = || {
        let projects = Path::new(transcript_path?).parent()?.parent()?;
        (projects.file_name()? == "projects").then(|| projects.parent().map(Path::to_path_buf))?
    };
    from_transcript().or_else(env::claude_dir)
}

/// Reads the entry of a process; `None` where there is none.
///
/// # Errors
/// Unreadable, or not understood.
pub fn read(config_dir: &Path, pid: i32) -> io::Result<Option<ClientSession>> {
    let path = config_dir.join(format!("sessions/{pid}.json"));
    // A fifo in its place must not block.
    let mut options = fs_err::OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let text = match options.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => {
            let mut text = String::new();
            io::Read::read_to_string(&mut io::Read::take(other?, BYTES_MAX), &mut text)?;
            text
        }
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|why| io::Error::other(format!("{}: {why}", path.display())))
}
