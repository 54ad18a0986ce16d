//! What became of a continuation: proven by the turn boundaries after it, never by
//! the act itself.

use serde::Serialize;

use super::lease::{Event, Line};

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The next turn ended well.
    Resumed,
    /// The next turn failed too.
    FailedAgain,
    /// The session ended before its next turn did.
    Ended,
    /// Nothing has shown yet.
    #[default]
    NotYet,
}

impl Proof {
    /// In words, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::Resumed => "resumed: the next turn ended well",
            Self::FailedAgain => "failed again: the next turn failed too",
            Self::Ended => "the session ended before its next turn did",
            Self::NotYet => "not proven yet: no later turn has ended",
        }
    }
}

/// What the session's lease and its later failures (ms since 1970) say of a
/// continuation that was made at `done_at`.
pub fn of(done_at: i64, lease: &[Line], failures: &[i64]) -> Proof {
    let failed_at = failures.iter().copied().filter(|at| *at > done_at).min();
    // A restart ends the old process on purpose: only an end without a later
    // start is one.
    let later = || lease.iter().filter(|line| line.at >= done_at);
    let stopped_at = later().find(|line| line.event == Event::Stop).map(|line| line.at);
    let ended_at = later()
        .rfind(|line| matches!(line.event, Event::End | Event::Start))
        .filter(|line| line.event == Event::End)
        .map(|line| line.at);
    let first = [
        (stopped_at, Proof::Resumed),
        (failed_at, Proof::FailedAgain),
        (ended_at, Proof::Ended),
    ];
    let first = first.into_iter().filter_map(|(at, proof)| Some((at?, proof)));
    first
        .min_by_key(|(at, _)| *at)
        .map(|(_, proof)| proof)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: i64, event: Event) -> Line {
        Line {
            format: 1,
            at,
            event,
            ..Line::default()
        }
    }

    #[test]
    fn the_first_boundary_after_it_decides() {
        use Event::{End, Injected, Start, Stop};
        type Case = (&'static [(i64, Event)], &'static [i64], Proof);
        let cases: [Case; 8] = [
            (&[(5, Stop)], &[], Proof::NotYet),
            (&[(11, Injected)], &[], Proof::NotYet),
            (&[(11, Injected), (12, Stop)], &[], Proof::Resumed),
            (&[(11, Injected), (12, Stop)], &[13], Proof::Resumed),
            (&[(11, Injected), (14, Stop)], &[13], Proof::FailedAgain),
            (&[], &[9], Proof::NotYet),
            (&[(11, End)], &[], Proof::Ended),
            (&[(11, End), (12, Start), (13, Stop)], &[], Proof::Resumed),
        ];
        for (lines, failures, expected) in cases {
            let lease: Vec<Line> = lines.iter().map(|(at, event)| line(*at, *event)).collect();
            assert_eq!(of(10, &lease, failures), expected, "{lines:?} {failures:?}");
        }
    }
}
