//! Budgets: at most so many acts of a kind in a rolling window.
//!
//! One object for all of them. It holds the instants (UTC, ms since 1970) of the
//! newest acts, so a change of daylight saving means nothing to it. It counts
//! acts: looking at it spends nothing.
//!
//! When the clock changes: an act that now lies in the future is taken to have
//! happened now, and is written so the next time. A clock set back thus costs at
//! most one window, never more. A clock set forward makes acts look old, but the
//! newest ones are kept by number, not by age, so they count again when it is
//! set right.

use serde::{Deserialize, Serialize};

/// How many instants are kept: more than any limit asks for.
pub const KEPT_MAX: usize = 64;

/// So many acts in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most acts in the window.
    pub acts_max: usize,
    /// The window's length in milliseconds.
    pub window_ms: i64,
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A rolling day.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// Wakes other than after transient failures: the client has no loop guard of
/// its own (75 wakes in 25 s were measured, 2.1.332).
pub const WAKES: [Limit; 2] = [
    Limit {
        acts_max: 6,
        window_ms: HOUR_MS,
    },
    Limit {
        acts_max: 20,
        window_ms: DAY_MS,
    },
];

/// Restarts on the whole machine: one failure of many sessions must not become
/// many starts at once.
pub const MACHINE_RESTARTS: [Limit; 1] = [Limit {
    acts_max: 1,
    window_ms: MINUTE_MS,
}];

/// Restarts of one session (rule W4).
pub fn session_restarts(per_day_max: u32) -> [Limit; 1] {
    [Limit {
        acts_max: usize::try_from(per_day_max).unwrap_or(usize::MAX).min(KEPT_MAX),
        window_ms: DAY_MS,
    }]
}

/// Whether one more act fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It does.
    Free,
    /// It does not before this instant (ms since 1970).
    FullUntil(i64),
}

/// The instants of the newest acts, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(Vec<i64>);

impl Tally {
    /// A tally of these acts.
    pub fn of(acts: impl IntoIterator<Item = i64>) -> Self {
        Self(acts.into_iter().collect())
    }

    /// Brings the instants in order as seen at `now`: none in the future, sorted,
    /// no more than are kept.
    pub fn settle(&mut self, now: i64) {
        for act in &mut self.0 {
            *act = (*act).min(now);
        }
        self.0.sort_unstable();
        let surplus = self.0.len().saturating_sub(KEPT_MAX);
        self.0.drain(..surplus);
    }

    /// How many acts lie in the window that ends at `now`.
    pub fn count(&self, now: i64, window_ms: i64) -> usize {
        self.0
            .iter()
            .filter(|act| now - (**act).min(now) < window_ms)
            .count()
    }

    /// Whether one more act at `now` keeps every limit.
    pub fn room(&self, now: i64, limits: &[Limit]) -> Room {
        let mut acts: Vec<i64> = self.0.iter().map(|act| (*act).min(now)).collect();
        acts.sort_unstable();
        let full_until = limits.iter().filter_map(|limit| {
            let oldest_that_counts = acts.len().checked_sub(limit.acts_max)?;
            match acts.get(oldest_that_counts) {
                // A limit of no acts at all: never.
                None => Some(i64::MAX),
                Some(act) => Some(act.saturating_add(limit.window_ms)).filter(|until| *until > now),
            }
        });
        full_until.max().map_or(Room::Free, Room::FullUntil)
    }

    /// Counts one act at `now`.
    pub fn record(&mut self, now: i64) {
        self.0.push(now);
        self.settle(now);
    }

    /// The instants, oldest first.
    pub fn acts(&self) -> &[i64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_A_DAY: [Limit; 1] = [Limit {
        acts_max: 3,
        window_ms: DAY_MS,
    }];

    #[test]
    fn room_by_acts_and_now() {
        let h = HOUR_MS;
        let cases: [(&[i64], i64, Room); 9] = [
            (&[], 0, Room::Free),
            (&[0, h], 2 * h, Room::Free),
            (&[0, h, 2 * h], 3 * h, Room::FullUntil(DAY_MS)),
            (&[0, h, 2 * h], DAY_MS - 1, Room::FullUntil(DAY_MS)),
            (&[0, h, 2 * h], DAY_MS, Room::Free),
            // A day of 23 or 25 hours on the wall clock is 24 hours here.
            (&[0, 1, 2], 23 * h, Room::FullUntil(DAY_MS)),
            (&[0, 1, 2], 25 * h, Room::Free),
            // Acts out of order count all the same.
            (&[2 * h, 0, h], 3 * h, Room::FullUntil(DAY_MS)),
            // Older acts than the limit asks for change nothing.
            (&[-90 * h, -80 * h, 0, h, 2 * h], 3 * h, Room::FullUntil(DAY_MS)),
        ];
        for (acts, now, room) in cases {
            assert_eq!(
                Tally::of(acts.iter().copied()).room(now, &THREE_A_DAY),
                room,
                "{acts:?} at {now}"
            );
        }
    }

    #[test]
    fn the_tightest_limit_decides() {
        let six = Tally::of((0..6).map(|n| n * MINUTE_MS));
        assert_eq!(six.room(10 * MINUTE_MS, &WAKES), Room::FullUntil(HOUR_MS));
        let twenty = Tally::of((0..20).map(|n| n * HOUR_MS));
        assert_eq!(twenty.room(20 * HOUR_MS, &WAKES), Room::FullUntil(DAY_MS));
    }

    #[test]
    fn a_limit_of_none_is_never_free() {
        let limits = session_restarts(0);
        assert_eq!(Tally::default().room(5, &limits), Room::FullUntil(i64::MAX));
    }

    #[test]
    fn a_clock_set_back_costs_one_window_at_most() {
        let year = 365 * DAY_MS;
        let mut tally = Tally::of([year, year + 1, year + 2]);
        // The clock was a year ahead; now it is right.
        assert_eq!(tally.room(100, &THREE_A_DAY), Room::FullUntil(100 + DAY_MS));
        tally.settle(100);
        assert_eq!(tally.room(100 + DAY_MS, &THREE_A_DAY), Room::Free);
    }

    #[test]
    fn a_clock_set_forward_and_right_again_gives_nothing_away() {
        let mut tally = Tally::of([1, 2, 3]);
        tally.settle(400 * DAY_MS);
        assert_eq!(tally.room(10, &THREE_A_DAY), Room::FullUntil(1 + DAY_MS));
    }

    #[test]
    fn no_window_ever_holds_more_than_the_limit() {
        // Tries at odd intervals for 60 days; each is made where there is room.
        let mut tally = Tally::default();
        let mut made = Vec::new();
        let mut now = 0;
        for step in 0..5000_i64 {
            now += 1 + (step * 7919) % (40 * MINUTE_MS);
            if tally.room(now, &THREE_A_DAY) == Room::Free {
                tally.record(now);
                made.push(now);
            }
        }
        assert!(made.len() > 100);
        assert!(made.windows(4).all(|four| four[3] - four[0] >= DAY_MS));
        assert!(tally.acts().len() <= KEPT_MAX);
    }

    #[test]
    fn it_is_a_plain_list_on_disk() {
        let tally: Tally = serde_json::from_str("[1,2]").unwrap();
        assert_eq!(serde_json::to_string(&tally).unwrap(), "[1,2]");
        assert!(serde_json::from_str::<Tally>("[\"1\"]").is_err());
    }
}
