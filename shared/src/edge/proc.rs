//! Other processes: who they are and whether they are still the same.
//!
//! A pid is reused, so a process is named by pid and start time, on one machine
//! and in one pid namespace.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process: pid and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The pid, in our own pid namespace.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start: u64,
}

/// What a look at a process gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The very same process is there.
    Alive,
    /// No process of that pid, another one, or a zombie.
    Gone,
    /// Nobody could look.
    Unknown,
}

fn stat(pid: i32) -> std::io::Result<(char, i32, u64)> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest.split_ascii_whitespace();
    let parsed = (|| {
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some((state, parent, start))
    })();
    parsed.ok_or_else(|| std::io::Error::other(format!("/proc/{pid}/stat has an unknown form")))
}

impl ProcessId {
    /// The process that has this pid now.
    pub fn of(pid: i32) -> Option<Self> {
        let (_, _, start) = stat(pid).ok()?;
        Some(Self { pid, start })
    }

    /// Whether this very process is still there.
    pub fn liveness(self) -> Liveness {
        match stat(self.pid) {
            Ok((state, _, start)) if start == self.start && state != 'Z' && state != 'X' => Liveness::Alive,
            Ok(_) => Liveness::Gone,
            Err(_) => match Pid::from_raw(self.pid).map(test_kill_process) {
                Some(Err(rustix::io::Errno::SRCH)) | None => Liveness::Gone,
                // It is there but /proc won't tell who it is.
                Some(_) => Liveness::Unknown,
            },
        }
    }
}

/// Our own pid.
pub fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether nothing lies any more where our own program was started from: an
/// uninstall took it away while we slept. (An upgrade puts another in its place.)
pub fn is_own_program_gone() -> bool {
    let Ok(own) = std::env::current_exe() else {
        return false;
    };
    // Linux names a replaced or removed program so.
    let name = own.as_os_str().as_encoded_bytes();
    let place = name.strip_suffix(b" (deleted)").unwrap_or(name);
    !PathBuf::from(OsString::from_vec(place.to_vec())).exists()
}

/// The parent's pid.
pub fn parent_of(pid: i32) -> Option<i32> {
    stat(pid).ok().map(|(_, parent, _)| parent)
}

/// Whether the process's group is the one that its terminal listens to.
pub fn is_in_foreground(pid: i32) -> Option<bool> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i32>().ok());
    Some(number(2)? == number(5)?)
}

/// The terminal on a process's standard input, where it is one.
pub fn terminal(pid: i32) -> Option<PathBuf> {
    let path = fs_err::read_link(format!("/proc/{pid}/fd/0")).ok()?;
    path.starts_with("/dev/pts").then_some(path)
}

/// The command line, word by word, as the bytes it was started with.
pub fn argv(pid: i32) -> Option<Vec<OsString>> {
    let bytes = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    Some(
        bytes
            .split(|byte| *byte == 0)
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect(),
    )
}

/// The environment it was started with, as `NAME=value` words.
pub fn environ(pid: i32) -> Option<Vec<OsString>> {
    let bytes = fs_err::read(format!("/proc/{pid}/environ")).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// The working folder.
pub fn cwd(pid: i32) -> Option<PathBuf> {
    fs_err::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The executable; a replaced one reads with ` (deleted)` at the end.
pub fn executable(pid: i32) -> Option<PathBuf> {
    fs_err::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The pid namespace, as the kernel names it (`pid:[4026531836]`).
pub fn pid_namespace(pid: i32) -> Option<String> {
    fs_err::read_link(format!("/proc/{pid}/ns/pid"))
        .ok()
        .map(|path| path.to_string_lossy().into_owned())
}

/// The machine's id, which outlives boots.
pub fn machine_id() -> Option<String> {
    let text = fs_err::read_to_string("/etc/machine-id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The pids of every process we can see.
pub fn all_pids() -> std::io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            pids.push(pid);
        }
    }
    Ok(pids)
}
