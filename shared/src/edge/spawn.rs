//! Children, started in one place and always under a bound.
//!
//! A plain wait with a time limit is not enough: a child that prints more than a
//! pipe holds would hang until the limit, and a grandchild that keeps the pipe
//! open would hang it longer. So both pipes are drained while waiting, and at
//! the limit the child's whole process group is ended.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that starts children"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use wait_timeout::ChildExt;

/// The most that is kept of a child's output, in bytes; the rest is read and
/// dropped.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// What a child left.
#[derive(Debug)]
pub struct Output {
    /// How it ended; `None` where the limit ended it.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Whether it ended by itself, with exit code 0.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Standard output as text, bytes that are not UTF-8 replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, bytes that are not UTF-8 replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A command in a process group of its own, without standard input.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).process_group(0);
    command
}

/// Runs a command to its end, or ends its process group after `limit`.
///
/// # Errors
/// It can't be started or waited for.
pub fn run(mut command: Command, stdin: Option<&[u8]>, limit: Duration) -> io::Result<Output> {
    let started = Instant::now();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn()?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    if let (Some(bytes), Some(mut pipe)) = (stdin, child.stdin.take()) {
        let bytes = bytes.to_vec();
        // A child that does not read must not hold us: the thread ends with the
        // pipe, at the latest when the group is ended.
        std::thread::spawn(move || pipe.write_all(&bytes).ok());
    }
    let status = child.wait_timeout(limit)?;
    if status.is_none() {
        end_group(&mut child);
    }
    // A grandchild may hold the pipes: after the child's own end they get a
    // moment, then its group is ended too. On a busy machine the threads that
    // drain them need that moment themselves.
    let grace = limit
        .saturating_sub(started.elapsed())
        .clamp(Duration::from_millis(50), Duration::from_secs(1));
    let mut collect = |receiver: &mpsc::Receiver<Vec<u8>>| {
        receiver.recv_timeout(grace).unwrap_or_else(|_| {
            end_group(&mut child);
            receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
        })
    };
    let (stdout, stderr) = (collect(&stdout), collect(&stderr));
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Starts a command that outlives us: no pipes, its own process group. The
/// caller's end then hands it to init.
///
/// # Errors
/// It can't be started.
pub fn start_detached(mut command: Command) -> io::Result<u32> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child.id())
}

/// Runs a command on the person's terminal to its end, without a limit: the
/// person ends it.
///
/// # Errors
/// It can't be started or waited for.
pub fn foreground(mut command: Command) -> io::Result<ExitStatus> {
    // The terminal's own process group, or the command could not read from it.
    command.process_group(rustix::process::getpgrp().as_raw_nonzero().get());
    command.stdin(Stdio::inherit()).status()
}

/// Becomes another program: same pid, these words, this folder, and this
/// environment (`NAME=value` words) or our own. Comes back only with an error.
pub fn become_program(words: &[OsString], cwd: &Path, environ: Option<&[OsString]>) -> io::Error {
    let Some((program, rest)) = words.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start");
    };
    let mut command = Command::new(program);
    command.args(rest).current_dir(cwd);
    if let Some(environ) = environ {
        command.env_clear();
        for word in environ {
            let bytes = word.as_bytes();
            // A name may begin with `=` nowhere but by accident; such a word is
            // passed over.
            if let Some(end) = bytes.iter().position(|byte| *byte == b'=').filter(|end| *end > 0)
                && let (Some(name), Some(value)) = (bytes.get(..end), bytes.get(end + 1..))
            {
                command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
            }
        }
    }
    command.exec()
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let read = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
            if read.is_ok() {
                io::copy(&mut pipe, &mut io::sink()).ok();
            }
        }
        sender.send(kept).ok();
    });
    receiver
}

fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL).ok();
    }
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = command("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_code_come_back() {
        let output = run(
            sh("cat; echo err >&2; exit 3"),
            Some(b"in"),
            Duration::from_secs(5),
        )
        .unwrap();
        assert_eq!(
            (output.stdout_text().as_str(), output.stderr_text().as_str()),
            ("in", "err\n")
        );
        assert_eq!(output.status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn a_chatty_child_does_not_hang() {
        let output = run(sh("head -c 3000000 /dev/zero"), None, Duration::from_secs(10)).unwrap();
        assert!(output.is_success());
        assert_eq!(output.stdout.len() as u64, OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_grandchild_that_holds_the_pipe_does_not_hang() {
        let started = Instant::now();
        let output = run(sh("sleep 30 & echo hi"), None, Duration::from_secs(20)).unwrap();
        assert_eq!(output.stdout_text(), "hi\n");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn the_limit_ends_the_whole_group() {
        let started = Instant::now();
        let output = run(sh("sleep 30; echo late"), None, Duration::from_millis(200)).unwrap();
        assert!(output.status.is_none() && output.stdout.is_empty());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
