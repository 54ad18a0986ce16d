//! The decision: from everything that was seen to one act and its reason.

use serde::Serialize;
use shared::edge::wedge_file::LastHeal;
use shared::pure::diagnosis::{Diagnosis, Heal, Verdict};
use shared::pure::lease::Kind;
use shared::pure::tally::Room;

/// Everything that the decision rests on.
#[derive(Debug)]
pub(crate) struct World {
    /// A person switched off, paused or holds the session.
    pub(crate) is_stopped: bool,
    /// Whether the episode can be claimed: the payload names the turn.
    pub(crate) has_prompt_id: bool,
    /// What kind of session it is.
    pub(crate) kind: Kind,
    /// What is wrong.
    pub(crate) diagnosis: Diagnosis,
    /// The newest heal, unless a turn ended well since.
    pub(crate) last: Option<LastHeal>,
    /// Budgets; the error is why they can't be known.
    pub(crate) budgets: Result<Budgets, String>,
    /// Whether the process can be restarted where it runs; the error is why not.
    pub(crate) restartable: Result<(), String>,
    /// The command with which a person restarts the session.
    pub(crate) command: String,
}

/// Whether one more act fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budgets {
    /// A wake that is not for a transient failure.
    pub(crate) wake: Room,
    /// A restart of this session.
    pub(crate) restart: Room,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "act")]
pub(crate) enum Act {
    /// Hands off.
    #[default]
    Nothing,
    /// Wait with back-off, then wake.
    Wait,
    /// Wake at once.
    Wake,
    /// Restart the process.
    Restart,
    /// Hand it up.
    Signal {
        /// A word a program can branch on.
        state: &'static str,
    },
}

/// An act and its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Decision {
    /// What is to be done.
    pub(crate) act: Act,
    /// Why, in words for the log and for a person.
    pub(crate) why: String,
}

const NEEDS_PERSON: Act = Act::Signal {
    state: "needs-person",
};
const EXHAUSTED: Act = Act::Signal { state: "exhausted" };

fn decision(act: Act, why: impl Into<String>) -> Decision {
    Decision { act, why: why.into() }
}

/// Decides.
pub(crate) fn decide(world: &World) -> Decision {
    let diagnosis = &world.diagnosis;
    if world.is_stopped {
        return decision(Act::Nothing, "switched off, PAUSED or held by a person");
    }
    if !world.has_prompt_id {
        return decision(Act::Nothing, "unknown: the client did not name the turn");
    }
    match (diagnosis.verdict, diagnosis.heal) {
        (Verdict::Ok | Verdict::Unknown, _) => decision(Act::Nothing, &diagnosis.why),
        (Verdict::NotForUs, _) if diagnosis.recipe.is_none() => decision(Act::Nothing, &diagnosis.why),
        (_, Heal::Repair | Heal::MoveAccount | Heal::RefreshCredential | Heal::None) => {
            decision(NEEDS_PERSON, &diagnosis.why)
        }
        _ if world.kind == Kind::OneShot => decision(
            NEEDS_PERSON,
            format!("{} A one-shot run: its caller owns the retry.", diagnosis.why),
        ),
        (_, Heal::Wait) => wait(world),
        (_, Heal::Wake) => wake_or_more(world),
        (_, Heal::Restart) => restart_or_less(world, &diagnosis.why),
    }
}

fn wait(world: &World) -> Decision {
    if world.kind.can_be_waked() {
        decision(Act::Wait, &world.diagnosis.why)
    } else {
        decision(
            Act::Nothing,
            "unknown: nobody can tell what kind of session it is",
        )
    }
}

fn wake_or_more(world: &World) -> Decision {
    let why = &world.diagnosis.why;
    if was_tried(world, "wake") {
        let why = format!("{why} A wake was tried, and the same failure came back.");
        return restart_or_less(world, &why);
    }
    if was_tried(world, "restart") {
        return came_back(why);
    }
    if !world.kind.can_be_waked() {
        return decision(
            Act::Nothing,
            "unknown: nobody can tell what kind of session it is",
        );
    }
    match &world.budgets {
        Err(unknown) => decision(Act::Nothing, format!("unknown: {unknown}")),
        Ok(budgets) if budgets.wake == Room::Free => decision(Act::Wake, why),
        Ok(_) => decision(EXHAUSTED, format!("{why} The session's wakes are used up.")),
    }
}

fn restart_or_less(world: &World, why: &str) -> Decision {
    if was_tried(world, "restart") {
        return came_back(why);
    }
    let budgets = match &world.budgets {
        Err(unknown) => return decision(Act::Nothing, format!("unknown: {unknown}")),
        Ok(budgets) => budgets,
    };
    if budgets.restart != Room::Free {
        return decision(
            EXHAUSTED,
            format!("{why} The restarts of the last 24 hours are used up."),
        );
    }
    match &world.restartable {
        Ok(()) => decision(Act::Restart, why),
        Err(cannot) => decision(
            NEEDS_PERSON,
            format!("{why} Only a restart can help, and it can't be done from here: {cannot}."),
        ),
    }
}

fn came_back(why: &str) -> Decision {
    decision(
        NEEDS_PERSON,
        format!("{why} A restart was tried, and the same failure came back."),
    )
}

fn was_tried(world: &World, act: &str) -> bool {
    let print = world.diagnosis.fingerprint.as_deref();
    world
        .last
        .as_ref()
        .is_some_and(|last| last.act == act && Some(last.fingerprint.as_str()) == print)
}

/// The decision as one JSON object, for `--explain`.
pub(crate) fn explanation(world: &World, decision: &Decision) -> String {
    let diagnosis = &world.diagnosis;
    let value = serde_json::json!({
        "hook": crate::NAME,
        "decision": decision.act,
        "why": decision.why,
        "kind_of_session": world.kind,
        "verdict": diagnosis.verdict,
        "heal": diagnosis.heal,
        "kind": diagnosis.kind,
        "fingerprint": diagnosis.fingerprint,
        "restartable": world.restartable.as_ref().err().map_or("yes", String::as_str),
        "command": world.command,
    });
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(verdict: Verdict, heal: Heal) -> World {
        World {
            is_stopped: false,
            has_prompt_id: true,
            kind: Kind::Terminal,
            diagnosis: Diagnosis {
                verdict,
                heal,
                kind: "k",
                fingerprint: Some("k@1".into()),
                ..Diagnosis::default()
            },
            last: None,
            budgets: Ok(Budgets {
                wake: Room::Free,
                restart: Room::Free,
            }),
            restartable: Ok(()),
            command: String::new(),
        }
    }

    fn after(act: &str, fingerprint: &str, mut world: World) -> World {
        world.last = Some(LastHeal {
            act: act.into(),
            fingerprint: fingerprint.into(),
            at: 1,
        });
        world
    }

    fn with(change: impl FnOnce(&mut World), mut world: World) -> World {
        change(&mut world);
        world
    }

    fn full(wake: bool, restart: bool, world: World) -> World {
        let room = |is_full| {
            if is_full { Room::FullUntil(9) } else { Room::Free }
        };
        with(
            |world| {
                world.budgets = Ok(Budgets {
                    wake: room(wake),
                    restart: room(restart),
                });
            },
            world,
        )
    }

    fn kind(kind: Kind, world: World) -> World {
        with(|world| world.kind = kind, world)
    }

    fn recipe(world: World) -> World {
        with(|world| world.diagnosis.recipe = Some("do this"), world)
    }

    #[test]
    fn each_kind_gets_its_cheapest_cure() {
        let wait = || world(Verdict::Transient, Heal::Wait);
        let wake = || world(Verdict::Wedge, Heal::Wake);
        let restart = || world(Verdict::Wedge, Heal::Restart);
        let cases = [
            ("transient", wait(), Act::Wait),
            (
                "transient, again and again",
                after("wake", "k@1", wait()),
                Act::Wait,
            ),
            ("transient, no budget left", full(true, true, wait()), Act::Wait),
            ("transient, bg", kind(Kind::Background, wait()), Act::Wait),
            ("transient, sdk", kind(Kind::StreamJson, wait()), Act::Wait),
            ("transient, -p", kind(Kind::OneShot, wait()), NEEDS_PERSON),
            ("transient, unseen", kind(Kind::Unknown, wait()), Act::Nothing),
            ("wake", wake(), Act::Wake),
            ("wake, unseen", kind(Kind::Unknown, wake()), Act::Nothing),
            ("wakes used up", full(true, false, wake()), EXHAUSTED),
            (
                "the same after a wake",
                after("wake", "k@1", wake()),
                Act::Restart,
            ),
            ("another after a wake", after("wake", "k@2", wake()), Act::Wake),
            (
                "the same after a restart",
                after("restart", "k@1", wake()),
                NEEDS_PERSON,
            ),
            ("wedge", restart(), Act::Restart),
            (
                "cloud login",
                world(Verdict::Credential, Heal::Restart),
                Act::Restart,
            ),
            ("wedge, -p", kind(Kind::OneShot, restart()), NEEDS_PERSON),
            ("restarts used up", full(false, true, restart()), EXHAUSTED),
            ("wedge again", after("restart", "k@1", restart()), NEEDS_PERSON),
            ("another wedge", after("restart", "k@2", restart()), Act::Restart),
            (
                "no host",
                with(|world| world.restartable = Err("no tmux".into()), restart()),
                NEEDS_PERSON,
            ),
            (
                "budget unreadable",
                with(|world| world.budgets = Err("newer".into()), restart()),
                Act::Nothing,
            ),
            (
                "poisoned",
                recipe(world(Verdict::Poisoned, Heal::Repair)),
                NEEDS_PERSON,
            ),
            (
                "login",
                world(Verdict::Credential, Heal::RefreshCredential),
                NEEDS_PERSON,
            ),
            ("wall", world(Verdict::Walled, Heal::MoveAccount), NEEDS_PERSON),
            (
                "policy",
                recipe(world(Verdict::NotForUs, Heal::None)),
                NEEDS_PERSON,
            ),
            (
                "interrupt, question, helper",
                world(Verdict::NotForUs, Heal::None),
                Act::Nothing,
            ),
            ("unknown", world(Verdict::Unknown, Heal::None), Act::Nothing),
            ("ok", world(Verdict::Ok, Heal::None), Act::Nothing),
            (
                "stopped",
                with(|world| world.is_stopped = true, restart()),
                Act::Nothing,
            ),
            (
                "turn not named",
                with(|world| world.has_prompt_id = false, wait()),
                Act::Nothing,
            ),
        ];
        for (name, world, act) in cases {
            assert_eq!(decide(&world).act, act, "{name}");
        }
    }

    #[test]
    fn the_default_is_hands_off() {
        assert_eq!(Decision::default().act, Act::Nothing);
        assert_eq!(
            decide(&World {
                diagnosis: Diagnosis::default(),
                ..world(Verdict::Ok, Heal::None)
            })
            .act,
            Act::Nothing
        );
    }
}
