//! Processes of a throw-away home: found by the home in their environment, which
//! no other process on the machine can have, and ended by pid.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::wait::wait_until;

/// Whether the process exists and is not a zombie.
pub fn alive(pid: u32) -> bool {
    let exists = to_pid(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or("");
    exists && !state.starts_with('Z')
}

/// Asks a process to end, and ends it after two seconds if it did not.
pub fn end_process(pid: u32) {
    let Some(target) = to_pid(pid) else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        if kill_process(target, signal).is_err() {
            return;
        }
        if wait_until(Duration::from_secs(2), || !alive(pid)) {
            return;
        }
    }
}

/// Ends everything whose `HOME` is this folder, children of children included:
/// the client's background service, helpers and tools that outlived a test.
pub(super) fn end_all_of(home: &Path) {
    for _ in 0..3 {
        let pids = of_home(home);
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            end_process(pid);
        }
    }
}

/// The processes whose `HOME` is this folder. Linux only: elsewhere none.
fn of_home(home: &Path) -> Vec<u32> {
    let wanted = format!("HOME={}", home.display());
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| pid != std::process::id() && alive(pid))
        .filter(|pid| {
            let environment = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        })
        .collect()
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
