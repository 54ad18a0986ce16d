//! The lease's file: appended by session-lease, read by the other hooks.
//!
//! It is begun anew once it is large. An append that saw it small costs nothing
//! extra; one that saw it close to that bound takes a shared lock and looks
//! whether the file was replaced in between. Whoever begins it anew holds the
//! lock alone. So no line goes to a file that nobody reads any more, unless 64 KB
//! of lines come between one run's look and its write.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FlockOperation, fstat};

use crate::pure::lease::{self, Lease, Line};
use crate::pure::session_id::SessionId;

use super::lock;
use super::state::{self, Access, Durability, State};

/// Size at which session-lease begins the file anew, keeping the host line.
pub const BYTES_MAX: usize = 768 << 10;

/// Size from which an append looks whether the file is being replaced.
const GUARDED_BYTES: usize = BYTES_MAX - (64 << 10);

/// How long an append waits for whoever replaces the file, in milliseconds.
const REPLACE_WAIT_MS: u64 = 300;

/// How much of the end tells about the latest turns.
pub const RECENT_BYTES: usize = 8 << 10;

/// The file's name under the root.
pub fn name(sid: &SessionId) -> String {
    format!("session/{sid}/lease.jsonl")
}

/// Appends one line; whether the file is then large enough to [`begin_anew`].
///
/// # Errors
/// As the system says.
pub fn append(state: &State, sid: &SessionId, line: &Line) -> anyhow::Result<bool> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    let name = name(sid);
    loop {
        let (file, size) = state.open_sized(&name, Access::Append)?;
        if size < GUARDED_BYTES as u64 || is_in_place(&file)? {
            state::append_lines(file.as_fd(), &bytes)?;
            return Ok(size > BYTES_MAX as u64);
        }
    }
}

/// Whether the file still has its name. The lock keeps it so until it is closed;
/// where somebody else keeps the lock the whole time, the line is written anyway.
fn is_in_place(file: &OwnedFd) -> io::Result<bool> {
    let is_held = lock::hold(file, FlockOperation::NonBlockingLockShared, REPLACE_WAIT_MS)?;
    Ok(!is_held || fstat(file)?.st_nlink > 0)
}

/// Begins a large file anew: the latest turns stay, and of what is older the
/// lines that still tell something. `false` where another run is at it, the file
/// is not large, or lines of a newer version are in it.
///
/// # Errors
/// As the system says; the file is then as it was.
pub fn begin_anew(state: &State, sid: &SessionId) -> anyhow::Result<bool> {
    let name = name(sid);
    let (file, size) = state.open_sized(&name, Access::Lock)?;
    if size <= BYTES_MAX as u64
        || !lock::hold(&file, FlockOperation::NonBlockingLockExclusive, 0)?
        || fstat(&file)?.st_nlink == 0
    {
        return Ok(false);
    }
    let (bytes, whole) = state::read_tail_of(file.as_fd(), 2 * BYTES_MAX)?;
    let Some(shortened) = lease::shorten(&bytes, whole, RECENT_BYTES) else {
        return Ok(false);
    };
    state.replace(&name, &shortened, Durability::Process)?;
    Ok(true)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::lease::{Event, FORMAT, Host};

    fn line(at: i64, event: Event) -> Line {
        Line {
            format: FORMAT,
            at,
            event,
            prompt_id: Some(format!("p{at}")),
            ..Line::default()
        }
    }

    /// A root with a lease of this size at least: one start, then turns.
    fn large(bytes: usize) -> (tempfile::TempDir, State, SessionId) {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        let sid = SessionId::parse("s").unwrap();
        let mut start = line(1, Event::Start);
        start.host = Some(Host {
            pid: 7,
            ..Host::default()
        });
        let mut text = serde_json::to_string(&start).unwrap() + "\n";
        let mut at = 1;
        while text.len() <= bytes {
            at += 1;
            let event = if at % 2 == 0 { Event::Prompt } else { Event::Stop };
            text += &(serde_json::to_string(&line(at, event)).unwrap() + "\n");
        }
        state.append(&name(&sid), text.as_bytes()).unwrap();
        (dir, state, sid)
    }

    #[test]
    fn a_large_lease_is_begun_anew_and_tells_the_same() {
        let (_dir, state, sid) = large(BYTES_MAX);
        let before = read(&state, &sid).unwrap().unwrap();
        assert_eq!(before.host.as_ref().map(|host| host.pid), Some(7));
        assert!(begin_anew(&state, &sid).unwrap());
        assert_eq!(read(&state, &sid).unwrap().unwrap(), before);
        let (size, _) = state.stat(&name(&sid)).unwrap();
        assert!(
            (RECENT_BYTES as u64 / 2..2 * RECENT_BYTES as u64).contains(&size),
            "{size}"
        );
        assert!(!begin_anew(&state, &sid).unwrap(), "once is enough");
    }

    #[test]
    fn a_small_lease_and_one_of_a_newer_version_are_left() {
        let (_dir, state, sid) = large(BYTES_MAX - 4096);
        assert!(!append(&state, &sid, &line(1, Event::Notify)).unwrap());
        assert!(!begin_anew(&state, &sid).unwrap());
        let (_dir, state, sid) = large(BYTES_MAX);
        state
            .append(&name(&sid), b"{\"format\":2,\"at\":1,\"event\":\"dance\"}\n")
            .unwrap();
        assert!(append(&state, &sid, &line(1, Event::Notify)).unwrap());
        assert!(!begin_anew(&state, &sid).unwrap());
    }

    #[test]
    fn no_line_is_lost_to_a_file_that_was_replaced() {
        // Lines in the recent part are kept word by word, so a line that is not
        // there afterwards was lost.
        let (_dir, state, sid) = large(BYTES_MAX);
        let path = state.path().to_owned();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (path, sid) = (&path, &sid);
                scope.spawn(move || {
                    let own = State::open_root(path).unwrap();
                    for n in 0..10 {
                        append(&own, sid, &line(1_000_000 + writer * 100 + n, Event::Notify)).unwrap();
                        begin_anew(&own, sid).unwrap();
                    }
                });
            }
        });
        let text = String::from_utf8(state.read(&name(&sid)).unwrap().unwrap()).unwrap();
        assert!(text.len() < BYTES_MAX / 2);
        for writer in 0..4 {
            for n in 0..10 {
                let id = format!("\"p{}\"", 1_000_000 + writer * 100 + n);
                assert!(text.contains(&id), "{id} is lost");
            }
        }
    }

    #[test]
    fn an_append_that_opened_the_old_file_goes_to_the_new_one() {
        let (_dir, state, sid) = large(BYTES_MAX);
        let (old, _) = state.open_sized(&name(&sid), Access::Append).unwrap();
        assert!(is_in_place(&old).unwrap());
        drop(old);
        let (old, _) = state.open_sized(&name(&sid), Access::Append).unwrap();
        assert!(begin_anew(&state, &sid).unwrap());
        assert!(!is_in_place(&old).unwrap());
    }
}
