//! What is long over goes: folders of sessions that ended 30 days ago, and notes
//! of processes that are gone.
//!
//! Done at a session's start, once a day at most and a bounded number at a time.
//! The time of `swept` says when it was done last, so that every other start pays
//! one look for it.

use shared::edge::proc::{self, Liveness, ProcessId};
use shared::edge::state::Durability;
use shared::edge::{lease_file, signal};
use shared::hook::Call;
use shared::pure::lease::Host;
use shared::pure::session_id::SessionId;

use crate::gather::Hosted;

const MARKER: &str = "swept";

const DAY_MS: i64 = 24 * 3_600_000;

/// How long after its end a session's folder stays.
const KEPT_MS: i64 = 30 * DAY_MS;

/// The most that one run takes away, of each kind.
const REMOVED_MAX: usize = 50;

/// The most that one run looks at, of each kind.
const LOOKED_AT_MAX: usize = 1000;

/// Sweeps, unless that was done within the last day. Nothing of it is worth a
/// person's turn: an error is a log line.
pub(crate) fn once_a_day(call: &Call) {
    if let Ok((_, at)) = call.state.stat(MARKER)
        && (call.started - at).abs() < DAY_MS
    {
        return;
    }
    // First, so that no other start sweeps too.
    let swept = call
        .state
        .replace(MARKER, b"", Durability::Process)
        .and_then(|()| sessions(call))
        .and_then(|gone| Ok((gone, hosts(call)?)));
    match swept {
        Ok((0, 0)) => {}
        Ok((sessions, hosts)) => call.log(&format!(
            "swept: {sessions} folders of sessions that ended 30 days ago, {hosts} notes of processes that are gone"
        )),
        Err(why) => call.log(&format!("not swept: {why}")),
    }
}

/// Up to [`LOOKED_AT_MAX`] of the names, beginning elsewhere each time: what is
/// left out today comes another day.
fn some_of(names: Vec<String>, call: &Call) -> impl Iterator<Item = String> {
    let count = names.len();
    let first = usize::try_from(call.started).unwrap_or(0) % count.max(1);
    names
        .into_iter()
        .cycle()
        .skip(first)
        .take(count.min(LOOKED_AT_MAX))
}

fn sessions(call: &Call) -> std::io::Result<usize> {
    let signals = call.state.list(signal::FOLDER)?;
    let mut gone = 0;
    for name in some_of(call.state.list("session")?, call) {
        if gone == REMOVED_MAX {
            break;
        }
        if let Some(sid) = SessionId::parse(&name)
            && sid != call.sid
            && is_long_over(call, &sid)
            && !signal::is_unread_among(&signals, &sid)
        {
            call.state.remove_tree(&format!("session/{sid}"))?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// Whether a session ended that long ago. One that nobody closed ended with its
/// process; where nobody can tell whether that runs, it did not.
fn is_long_over(call: &Call, sid: &SessionId) -> bool {
    let before = call.started - KEPT_MS;
    let is_old = |name: &str| call.state.stat(name).is_ok_and(|(_, at)| at < before);
    let lease = lease_file::name(sid);
    if !call.state.exists(&lease) {
        return is_old(&format!("session/{sid}"));
    }
    if !is_old(&lease) {
        return false;
    }
    let Ok(Some(lease)) = lease_file::read(call.state, sid) else {
        return false;
    };
    match (&lease.ended, &lease.host) {
        (Some((_, at)), _) => *at < before,
        (None, Some(host)) => lease.renewed_at < before && is_gone(host),
        (None, None) => false,
    }
}

fn is_gone(host: &Host) -> bool {
    let is_here =
        host.machine == proc::machine_id() && host.pid_namespace == proc::pid_namespace(proc::own_pid());
    let process = ProcessId {
        pid: host.pid,
        start: host.start,
    };
    is_here && process.liveness() == Liveness::Gone
}

/// Notes of processes that are gone. One of the last day stays: its process may
/// be another pid namespace's.
fn hosts(call: &Call) -> std::io::Result<usize> {
    let mut gone = 0;
    for name in some_of(call.state.list("hosts")?, call) {
        if gone == REMOVED_MAX {
            break;
        }
        let path = format!("hosts/{name}");
        let Some(pid) = name.strip_suffix(".json").and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let is_old = |at: i64| at < call.started - DAY_MS;
        if !call.state.stat(&path).is_ok_and(|(_, at)| is_old(at)) {
            continue;
        }
        let bytes = call.state.read(&path).ok().flatten().unwrap_or_default();
        let Ok(note) = serde_json::from_slice::<Hosted>(&bytes) else {
            continue;
        };
        let process = ProcessId {
            pid,
            start: note.start,
        };
        if process.liveness() == Liveness::Gone {
            call.state.remove(&path)?;
            gone += 1;
        }
    }
    Ok(gone)
}
