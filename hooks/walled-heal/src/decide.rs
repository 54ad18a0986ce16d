//! What to do about a failed turn that is rung 2's: pure, as tables of cases.

use serde::Serialize;
use shared::pure::diagnosis::{Diagnosis, Heal, Verdict};
use shared::pure::lease::Kind;
use shared::pure::pool::Choice;

/// Moves of one session since its last good turn: more would burn through every
/// account on something that no account heals.
pub(crate) const MOVES_MAX: usize = 3;

/// A refusal this soon after a flip (ms) may still be the old account's answer.
pub(crate) const FLIP_DOUBT_MS: i64 = 10_000;

/// What is known before the accounts are looked at.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub diagnosis: Diagnosis,
    pub kind: Kind,
    /// The shard, where the session's login is one of ours.
    pub shard: Option<String>,
    /// The account the shard points to.
    pub account: Option<String>,
    /// A variable or setting that outranks every store.
    pub outranked_by: Option<String>,
    /// When the shard was last flipped (ms since 1970).
    pub flipped_at: Option<i64>,
    /// When the failed turn began (ms since 1970), where it is known.
    pub turn_began_at: Option<i64>,
    /// Moves of the session since its last good turn.
    pub moves: usize,
    pub wait_out_s: u64,
    /// When the failure was heard of (ms since 1970).
    pub heard_at: i64,
    pub now: i64,
}

impl World {
    pub(crate) fn is_walled(&self) -> bool {
        self.diagnosis.verdict == Verdict::Walled
    }

    /// Whether the refusal may be an answer to a request that still carried the
    /// account before the last flip: then nobody is charged. A turn that began
    /// after the flip leaves no doubt.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.flipped_at.is_some_and(|flipped_at| {
            // A flip "in the future" is one before the clock was set back.
            (self.heard_at - flipped_at).abs() < FLIP_DOUBT_MS
                && self.turn_began_at.is_none_or(|began| began <= flipped_at)
        })
    }
}

/// What to do, before the accounts are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "plan")]
pub(crate) enum Plan {
    /// Hands off.
    Leave { why: String },
    /// A person's business.
    Signal {
        state: &'static str,
        why: String,
        person: String,
    },
    /// A throttle: wait with back-off, then wake.
    Throttle { why: String },
    /// The account is spent, or its login dead: leave it.
    LeaveAccount { cause: Cause, charge: bool },
}

/// Why an account is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    Wall,
    DeadLogin,
}

impl Cause {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::DeadLogin => "dead-login",
        }
    }
}

/// What to do, the accounts known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "next")]
pub(crate) enum Next {
    /// Another mover has already flipped the shard: only wake.
    Wake {
        why: String,
    },
    Move {
        from: String,
        to: String,
    },
    /// No account has room: wait for the first that does. Without an instant
    /// nobody knows when that is, and only a person or a freed account helps.
    Park {
        until_s: Option<i64>,
        why: String,
    },
}

pub(crate) fn plan(world: &World) -> Plan {
    let diagnosis = &world.diagnosis;
    let why = diagnosis.why.clone();
    match (diagnosis.verdict, diagnosis.heal) {
        (Verdict::Walled, _) => Plan::LeaveAccount {
            cause: Cause::Wall,
            charge: !world.is_in_doubt(),
        },
        (Verdict::Credential, Heal::RefreshCredential | Heal::MoveAccount) => Plan::LeaveAccount {
            cause: Cause::DeadLogin,
            charge: !world.is_in_doubt(),
        },
        (Verdict::Transient, _) => Plan::Throttle { why },
        (Verdict::NotForUs | Verdict::Credential | Verdict::Wedge | Verdict::Poisoned, _)
            if diagnosis.recipe.is_some() =>
        {
            let person = diagnosis.recipe.unwrap_or_default().to_owned();
            Plan::Signal {
                state: "needs-person",
                why,
                person,
            }
        }
        _ => Plan::Leave { why },
    }
}

pub(crate) fn next(world: &World, charge: bool, choice: &Choice, park_margin_s: u64) -> Next {
    let margin = i64::try_from(park_margin_s).unwrap_or(i64::MAX);
    let own_reset = world.diagnosis.resets_at.map(|at| at.saturating_add(margin));
    let earliest = |free_at: Option<i64>| match (own_reset, free_at) {
        (Some(own), Some(free)) => Some(own.min(free)),
        (own, free) => own.or(free),
    };
    let park = |free_at: Option<i64>, why: &str| Next::Park {
        until_s: earliest(free_at),
        why: why.to_owned(),
    };
    if let Some(by) = &world.outranked_by {
        return park(
            None,
            &format!("{by} outranks every account, so a move would change nothing"),
        );
    }
    let (Some(_), Some(account)) = (&world.shard, &world.account) else {
        return park(
            None,
            "the session's login is none of ours to move; `ccswitch adopt` makes it one",
        );
    };
    if !charge {
        return Next::Wake {
            why: "the account was changed a moment ago; the refusal may be the old one's".into(),
        };
    }
    let soon = i64::try_from(world.wait_out_s).unwrap_or(i64::MAX);
    if soon > 0
        && world
            .diagnosis
            .resets_at
            .is_some_and(|at| at - world.now / 1000 <= soon)
    {
        return park(
            None,
            "the window opens again within minutes, which costs less than a move",
        );
    }
    if world.moves >= MOVES_MAX {
        return park(None, "three accounts were tried since the last good turn");
    }
    match &choice.target {
        Some(to) => Next::Move {
            from: account.clone(),
            to: to.clone(),
        },
        None => park(choice.free_at, "no account has room"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;
    const RESET: i64 = NOW / 1000 + 7200;

    fn world() -> World {
        World {
            diagnosis: Diagnosis {
                verdict: Verdict::Walled,
                heal: Heal::MoveAccount,
                resets_at: Some(RESET),
                ..Diagnosis::default()
            },
            kind: Kind::Terminal,
            shard: Some("default".into()),
            account: Some("a".into()),
            outranked_by: None,
            flipped_at: None,
            turn_began_at: Some(NOW - 60_000),
            moves: 0,
            wait_out_s: 0,
            heard_at: NOW,
            now: NOW,
        }
    }

    fn with(change: impl Fn(&mut World)) -> World {
        let mut world = world();
        change(&mut world);
        world
    }

    #[test]
    fn the_verdict_decides_the_plan() {
        let verdict = |verdict, heal| {
            with(move |world| {
                world.diagnosis.verdict = verdict;
                world.diagnosis.heal = heal;
            })
        };
        let wall = Plan::LeaveAccount {
            cause: Cause::Wall,
            charge: true,
        };
        assert_eq!(plan(&world()), wall);
        let dead = Plan::LeaveAccount {
            cause: Cause::DeadLogin,
            charge: true,
        };
        assert_eq!(plan(&verdict(Verdict::Credential, Heal::RefreshCredential)), dead);
        assert_eq!(plan(&verdict(Verdict::Credential, Heal::MoveAccount)), dead);
        assert!(matches!(
            plan(&verdict(Verdict::Transient, Heal::Wait)),
            Plan::Throttle { .. }
        ));
        for left in [Verdict::Ok, Verdict::Unknown, Verdict::NotForUs, Verdict::Wedge] {
            assert!(
                matches!(plan(&verdict(left, Heal::None)), Plan::Leave { .. }),
                "{left:?}"
            );
        }
        let mut person = verdict(Verdict::NotForUs, Heal::None);
        person.diagnosis.recipe = Some("pay");
        assert!(matches!(plan(&person), Plan::Signal { .. }));
    }

    #[test]
    fn a_refusal_just_after_a_flip_charges_nobody() {
        let charge = |flipped_ago: i64, began_ago: Option<i64>| {
            let world = with(|world| {
                world.flipped_at = Some(NOW - flipped_ago);
                world.turn_began_at = began_ago.map(|ago| NOW - ago);
            });
            plan(&world)
                == Plan::LeaveAccount {
                    cause: Cause::Wall,
                    charge: true,
                }
        };
        // (the flip, the turn's begin, in ms before the refusal) -> charged?
        for (flipped, began, expected) in [
            (9_999, Some(60_000), false),
            (9_999, None, false),
            (10_000, Some(60_000), true),
            (5_000, Some(4_000), true),
            (5_000, Some(5_000), false),
            (-3_600_000, Some(60_000), true),
            (-3_600_000, None, true),
        ] {
            assert_eq!(charge(flipped, began), expected, "{flipped} {began:?}");
        }
    }

    #[test]
    fn where_a_session_goes() {
        let to_b = Choice {
            target: Some("b".into()),
            ..Choice::default()
        };
        let none = Choice {
            free_at: Some(RESET - 1000),
            ..Choice::default()
        };
        let parked = |next: Next| match next {
            Next::Park { until_s, .. } => until_s,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            next(&world(), true, &to_b, 240),
            Next::Move {
                from: "a".into(),
                to: "b".into()
            }
        );
        assert!(matches!(next(&world(), false, &to_b, 240), Next::Wake { .. }));
        // The first account that frees, or the own reset and the margin.
        assert_eq!(parked(next(&world(), true, &none, 240)), Some(RESET - 1000));
        assert_eq!(
            parked(next(&world(), true, &Choice::default(), 240)),
            Some(RESET + 240)
        );
        // Nothing to move, or nothing that a move would change.
        for change in [
            |world: &mut World| world.shard = None,
            |world: &mut World| world.account = None,
            |world: &mut World| world.outranked_by = Some("ANTHROPIC_API_KEY".into()),
            |world: &mut World| world.moves = 3,
            |world: &mut World| world.wait_out_s = 7200,
        ] {
            assert_eq!(parked(next(&with(change), true, &to_b, 240)), Some(RESET + 240));
        }
        assert!(matches!(
            next(&with(|world| world.wait_out_s = 7199), true, &to_b, 240),
            Next::Move { .. }
        ));
        // Nobody knows when: no wake by the clock.
        let unknown = with(|world| world.diagnosis.resets_at = None);
        assert_eq!(parked(next(&unknown, true, &Choice::default(), 240)), None);
    }
}
