//! `outage.json`: what the machine's sessions tell each other of an outage.
//!
//! Small, and changed under its lock for a moment by each session that waits;
//! nobody holds the lock while it sleeps. See [`crate::pure::outage`].

use std::path::Path;

use crate::pure::backoff::Backoff;
use crate::pure::outage::{Next, Outage, Probe, ProbeTurn, Waiter};
use crate::pure::reset_time;
use crate::pure::session_id::SessionId;
use crate::pure::transcript::Tail;

use super::json_file::{self, Object};
use super::proc::{Liveness, ProcessId};
use super::state::{Durability, State};
use super::{lease_file, transcript_file};

/// The format that this version writes.
pub const FORMAT: u64 = 1;

const NAME: &str = "outage.json";

/// Notes that a session's turn failed.
///
/// # Errors
/// As [`json_file::change`].
pub fn note_failure(state: &State, sid: &SessionId, now: i64) -> anyhow::Result<()> {
    change(state, |outage| outage.note_failure(sid.as_str(), now))
}

/// What the waiting session does now; one that goes as the probe has its place.
///
/// # Errors
/// As [`json_file::change`]: then its own back-off alone decides.
pub fn ask(
    state: &State,
    waiter: Waiter,
    as_probe: &Probe,
    now: i64,
    backoff: Backoff,
) -> anyhow::Result<Next> {
    change(state, |outage| {
        if let Some(probe) = &outage.probe {
            let turn = look_at(state, probe);
            outage.learn(turn);
        }
        let next = outage.next(waiter, now, backoff);
        if next == Next::GoAsProbe {
            outage.probe = Some(Probe {
                at: now,
                ..as_probe.clone()
            });
        }
        next
    })
}

fn change<T>(state: &State, change: impl FnOnce(&mut Outage) -> T) -> anyhow::Result<T> {
    json_file::change(state, NAME, FORMAT, Durability::Process, |object: &mut Object| {
        let mut outage = Outage {
            probe: object.field("probe")?,
            failed_at: object.field("failed_at")?,
            recovered_at: object.field("recovered_at")?,
        };
        let before = outage.clone();
        let result = change(&mut outage);
        if outage != before {
            object.set("probe", &outage.probe)?;
            object.set("failed_at", outage.failed_at)?;
            object.set("recovered_at", outage.recovered_at)?;
        }
        Ok(result)
    })
}

/// What became of the probe's turn: a good end in its lease, or an answer of the
/// model in its transcript. Turns can go on for hours after the answer.
fn look_at(state: &State, probe: &Probe) -> ProbeTurn {
    let Some(sid) = SessionId::parse(&probe.sid) else {
        return ProbeTurn::Lost;
    };
    let stopped = lease_file::read_recent(state, &sid)
        .ok()
        .flatten()
        .and_then(|lease| lease.last_stop_at);
    if let Some(at) = stopped.filter(|at| *at >= probe.at) {
        return ProbeTurn::Answered(at);
    }
    if let Some(at) = probe.transcript.as_deref().and_then(newest_answer_at)
        && at >= probe.at
    {
        return ProbeTurn::Answered(at);
    }
    let process = ProcessId {
        pid: probe.pid,
        start: probe.start,
    };
    match process.liveness() {
        Liveness::Gone => ProbeTurn::Lost,
        Liveness::Alive | Liveness::Unknown => ProbeTurn::Undecided,
    }
}

fn newest_answer_at(transcript: &str) -> Option<i64> {
    let (bytes, whole) =
        transcript_file::read_tail(Path::new(transcript), transcript_file::WINDOW_BYTES).ok()?;
    let tail = Tail::from_bytes(&bytes, whole);
    let newest = tail
        .lines
        .iter()
        .rev()
        .find(|line| line.is_main() && line.kind.as_deref() == Some("assistant"))?;
    if newest.is_failure() {
        return None;
    }
    reset_time::from_rfc3339(newest.timestamp.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        min_ms: 1000,
        max_ms: 60_000,
    };

    fn waiter(failed_at: i64) -> Waiter {
        Waiter {
            failed_at,
            due_at: failed_at + 1000,
            latest_at: failed_at + 60_000,
            spread_ms: 0,
        }
    }

    fn me(sid: &str) -> Probe {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        Probe {
            sid: sid.into(),
            pid: own,
            start: ProcessId::of(own).unwrap().start,
            ..Probe::default()
        }
    }

    #[test]
    fn one_probe_at_a_time_and_its_good_end_frees_all() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        let ask = |sid: &str, now| ask(&state, waiter(5000), &me(sid), now, BACKOFF).unwrap();
        assert_eq!(ask("a", 6000), Next::GoAsProbe);
        assert_eq!(ask("b", 6100), Next::Wait);
        let sid = SessionId::parse("a").unwrap();
        note_failure(&state, &sid, 7000).unwrap();
        assert_eq!(ask("b", 7500), Next::Wait, "a probe has just failed");
        assert_eq!(ask("b", 8000), Next::GoAsProbe);
        state
            .append(
                "session/b/lease.jsonl",
                b"{\"format\":1,\"at\":8500,\"event\":\"stop\"}\n",
            )
            .unwrap();
        assert_eq!(ask("c", 8600), Next::Go);
    }

    #[test]
    fn an_answer_in_the_transcript_and_a_dead_probe_count() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        let transcript = dir.path().join("t.jsonl");
        let line = |kind: &str, at: &str| {
            format!(
                "{{\"type\":\"assistant\",{kind}\"timestamp\":\"{at}\",\"message\":{{\"content\":[]}}}}\n"
            )
        };
        let failed = line(
            r#""isApiErrorMessage":true,"error":"server_error","#,
            "1970-01-01T00:00:06.500Z",
        );
        fs_err::write(&transcript, &failed).unwrap();
        let probe = Probe {
            transcript: transcript.to_str().map(str::to_owned),
            ..me("a")
        };
        let ask = |probe: &Probe, now| ask(&state, waiter(5000), probe, now, BACKOFF).unwrap();
        assert_eq!(ask(&probe, 6000), Next::GoAsProbe);
        assert_eq!(ask(&me("b"), 6600), Next::Wait);
        fs_err::write(&transcript, failed + &line("", "1970-01-01T00:00:06.700Z")).unwrap();
        assert_eq!(ask(&me("b"), 6800), Next::Go);

        let (_, later) = (note_failure(&state, &SessionId::parse("x").unwrap(), 0), 100_000);
        let gone = Probe {
            start: 1,
            ..me("dead")
        };
        let ask = |probe: &Probe, now| super::ask(&state, waiter(later), probe, now, BACKOFF).unwrap();
        assert_eq!(ask(&gone, later + 1000), Next::GoAsProbe);
        assert_eq!(ask(&me("b"), later + 1001), Next::GoAsProbe);
    }
}
