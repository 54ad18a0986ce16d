//! The lease's file: appended by session-lease, read by the other hooks.

use std::io;

use crate::pure::lease::{Lease, Line};
use crate::pure::session_id::SessionId;

use super::state::State;

/// Size at which session-lease begins the file anew, keeping the host line.
pub const BYTES_MAX: usize = 768 << 10;

/// How much of the end tells about the latest turns.
pub const RECENT_BYTES: usize = 8 << 10;

/// The file's name under the root.
pub fn name(sid: &SessionId) -> String {
    format!("session/{sid}/lease.jsonl")
}

/// Appends one line.
///
/// # Errors
/// As the system says.
pub fn append(state: &State, sid: &SessionId, line: &Line) -> anyhow::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    state.append(&name(sid), &bytes)?;
    Ok(())
}

/// The whole lease; `None` where there is none.
///
/// # Errors
/// Unreadable or not ours.
pub fn read(state: &State, sid: &SessionId) -> io::Result<Option<Lease>> {
    read_last(state, sid, 2 * BYTES_MAX)
}

/// The latest turns only: the host may be missing from it.
///
/// # Errors
/// Unreadable or not ours.
pub fn read_recent(state: &State, sid: &SessionId) -> io::Result<Option<Lease>> {
    read_last(state, sid, RECENT_BYTES)
}

fn read_last(state: &State, sid: &SessionId, bytes_max: usize) -> io::Result<Option<Lease>> {
    let tail = state.read_tail(&name(sid), bytes_max)?;
    Ok(tail.map(|(bytes, whole)| Lease::fold(&bytes, whole)))
}
