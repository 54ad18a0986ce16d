//! Who tries first while a service is out.
//!
//! Fifty sessions that failed together must neither hammer the service nor sleep
//! on after it is back. So one session at a time is the probe: it is waked, and
//! the others wait for what becomes of its turn. Once a probe got an answer, all
//! go on within one back-off step, each at a moment of its own. Whatever the
//! probes do, each session goes on at its own latest moment.

use serde::{Deserialize, Serialize};

use super::backoff::Backoff;

/// How long a probe's turn may stay undecided before the next session may try
/// too, in milliseconds: the client gives a failing request up after 181 to 189 s
/// (measured, 2.1.332).
pub const UNDECIDED_MS: i64 = 240_000;

/// The session that tries first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// The session.
    pub sid: String,
    /// Its client's pid.
    pub pid: i32,
    /// That process's start time in clock ticks since boot.
    pub start: u64,
    /// Its transcript, where an answer would show.
    pub transcript: Option<String>,
    /// When it was waked (ms since 1970).
    pub at: i64,
}

/// What all sessions of the machine know of the outage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// The probe under way.
    pub probe: Option<Probe>,
    /// When a probe last failed (ms since 1970).
    pub failed_at: i64,
    /// When the service was last seen to answer (ms since 1970).
    pub recovered_at: i64,
}

/// What became of the probe's turn so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTurn {
    /// Nothing is known yet.
    Undecided,
    /// The service answered, at this instant (ms since 1970).
    Answered(i64),
    /// The probe is gone.
    Lost,
}

/// A session that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// When its turn failed (ms since 1970).
    pub failed_at: i64,
    /// When its own back-off has passed: it may be the probe from then on.
    pub due_at: i64,
    /// When it goes on whatever the others do.
    pub latest_at: i64,
    /// Its place within the step after a recovery, in milliseconds.
    pub spread_ms: i64,
}

/// What a waiting session does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look again later.
    Wait,
    /// Go on, as the probe.
    GoAsProbe,
    /// Go on.
    Go,
}

impl Outage {
    /// Takes in what became of the probe's turn.
    pub fn learn(&mut self, turn: ProbeTurn) {
        match turn {
            ProbeTurn::Undecided => {}
            ProbeTurn::Answered(at) => {
                self.recovered_at = self.recovered_at.max(at);
                self.probe = None;
            }
            ProbeTurn::Lost => self.probe = None,
        }
    }

    /// Takes in that a session's turn failed: if it was the probe, the place is
    /// free again.
    pub fn note_failure(&mut self, sid: &str, now: i64) {
        if self.probe.as_ref().is_some_and(|probe| probe.sid == sid) {
            self.probe = None;
            self.failed_at = now;
        }
    }

    /// What the waiter does at `now`.
    pub fn next(&self, waiter: Waiter, now: i64, backoff: Backoff) -> Next {
        if self.recovered_at >= waiter.failed_at {
            let is_its_moment = now >= self.recovered_at.saturating_add(waiter.spread_ms);
            return if is_its_moment || now >= waiter.latest_at {
                Next::Go
            } else {
                Next::Wait
            };
        }
        let is_probing = self
            .probe
            .as_ref()
            .is_some_and(|probe| (now - probe.at).abs() < UNDECIDED_MS);
        if now >= waiter.latest_at {
            return if is_probing { Next::Go } else { Next::GoAsProbe };
        }
        let step = i64::try_from(backoff.min_ms).unwrap_or(i64::MAX);
        // A failure "in the future" is one before the clock was set back.
        let has_just_failed = now >= self.failed_at && now - self.failed_at < step;
        if now < waiter.due_at || is_probing || has_just_failed {
            return Next::Wait;
        }
        Next::GoAsProbe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        min_ms: 30_000,
        max_ms: 1_800_000,
    };

    fn probe(at: i64) -> Probe {
        Probe {
            sid: "p".into(),
            at,
            ..Probe::default()
        }
    }

    #[test]
    fn next_by_outage_and_now() {
        let waiter = Waiter {
            failed_at: 1_000_000,
            due_at: 1_040_000,
            latest_at: 2_500_000,
            spread_ms: 12_000,
        };
        let quiet = Outage::default();
        let probing = Outage {
            probe: Some(probe(1_030_000)),
            ..Outage::default()
        };
        let failed = Outage {
            failed_at: 1_035_000,
            ..Outage::default()
        };
        let recovered = Outage {
            recovered_at: 1_100_000,
            ..Outage::default()
        };
        let recovered_before = Outage {
            recovered_at: 900_000,
            ..Outage::default()
        };
        let cases = [
            (&quiet, 1_039_999, Next::Wait),
            (&quiet, 1_040_000, Next::GoAsProbe),
            (&probing, 1_040_000, Next::Wait),
            (&probing, 1_030_000 + UNDECIDED_MS, Next::GoAsProbe),
            (&probing, 2_500_000, Next::GoAsProbe),
            (&failed, 1_064_999, Next::Wait),
            (&failed, 1_065_000, Next::GoAsProbe),
            (&recovered, 1_111_999, Next::Wait),
            (&recovered, 1_112_000, Next::Go),
            (&recovered_before, 1_040_000, Next::GoAsProbe),
        ];
        for (outage, now, next) in cases {
            assert_eq!(outage.next(waiter, now, BACKOFF), next, "{outage:?} at {now}");
        }
    }

    /// Fifty sessions that fail together and an outage that ends: counts the
    /// tries, second by second.
    fn night(recovers_at: i64) -> (Vec<i64>, Vec<i64>) {
        fn ms(wait: u64) -> i64 {
            i64::try_from(wait).unwrap()
        }
        let waiter = |seed: u64, tries: u32, now: i64| Waiter {
            failed_at: now,
            due_at: now + ms(BACKOFF.wait_ms(tries, seed)),
            latest_at: now + ms(BACKOFF.wait_ms(u32::MAX, seed)),
            spread_ms: ms(BACKOFF.spread_ms(seed)),
        };
        let start: i64 = 10_000_000;
        let (mut tries, mut done) = (Vec::new(), Vec::new());
        let mut outage = Outage::default();
        let mut waiting: Vec<(u64, u32, Waiter)> =
            (0..50).map(|seed| (seed, 0, waiter(seed, 0, start))).collect();
        let mut now = start;
        while !waiting.is_empty() && now - start < 86_400_000 {
            waiting.retain_mut(|(seed, tried, its)| {
                let next = outage.next(*its, now, BACKOFF);
                if next == Next::Wait {
                    return true;
                }
                tries.push(now - start);
                if next == Next::GoAsProbe {
                    outage.probe = Some(Probe {
                        sid: seed.to_string(),
                        at: now,
                        ..Probe::default()
                    });
                }
                if now - start >= recovers_at {
                    if next == Next::GoAsProbe {
                        outage.learn(ProbeTurn::Answered(now));
                    }
                    done.push(now - start);
                    return false;
                }
                *tried += 1;
                // Its turn fails at once: the next look begins a new wait.
                outage.note_failure(&seed.to_string(), now);
                *its = waiter(*seed, *tried, now);
                true
            });
            now += 1000;
        }
        (tries, done)
    }

    #[test]
    fn fifty_sessions_do_not_hammer_and_all_go_on_after_the_recovery() {
        for recovers_at in [20_000, 600_000, 7_200_000] {
            let (tries, done) = night(recovers_at);
            assert_eq!(done.len(), 50, "recovery at {recovers_at}");
            let first = done[0];
            assert!(
                first - recovers_at <= 60_000,
                "the recovery at {recovers_at} was seen at {first}"
            );
            assert!(
                done.iter().all(|at| at - first <= 60_000),
                "all within a step of the first probe: {done:?}"
            );
            // At most two probes in any minute while it is out, and those
            // whose latest moment has come: fifty in ten minutes.
            let early: Vec<i64> = tries.into_iter().filter(|at| *at < recovers_at).collect();
            assert!(
                early.windows(9).all(|nine| nine[8] - nine[0] > 60_000),
                "{early:?}"
            );
        }
    }
}
