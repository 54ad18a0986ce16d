//! One-shot sessions: `claude -p`.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::home::Home;
use super::processes::end_process;
use super::wait::wait_for;

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code; `None` after a signal or when time ran out.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Home {
    /// Runs `claude` with these arguments to its end.
    pub fn run_claude(&self, arguments: &[&str], patience: Duration) -> Output {
        let mut command = self.claude();
        command.args(arguments);
        run(command, patience)
    }
}

/// Runs a command to its end. Its output goes through files, so that a child
/// which keeps the pipe open cannot hold the test up.
pub(super) fn run(mut command: Command, patience: Duration) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path| Stdio::from(fs_err::File::create(path).unwrap().into_parts().0);
    command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err));
    let mut child = command.spawn().unwrap();
    let status = wait_for(patience, || child.try_wait().unwrap());
    if status.is_none() {
        end_process(child.id());
        child.wait().ok();
    }
    let read = |path| fs_err::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Output {
        code: status.and_then(|status| status.code()),
        stdout: read(&out).unwrap(),
        stderr: read(&err).unwrap(),
    }
}
