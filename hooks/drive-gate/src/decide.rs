//! The decision: a pure function of what was gathered. `docs/gate.md` prints it
//! as a table, and a test compares the two over every combination.

use serde::{Deserialize, Serialize};

use crate::park::{Marks, Progress};

/// Everything that the decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World<'a> {
    /// What a person switched.
    pub(crate) switch: Switch,
    /// The session's goal.
    pub(crate) goal: Goal,
    /// The session's blocks that are not known to be closed.
    pub(crate) blocks: Vec<Block>,
    /// A background task that can still wake the session.
    pub(crate) has_running_task: bool,
    /// A wake that the session armed for itself.
    pub(crate) has_armed_wake: bool,
    /// The markers of the last message; none where the client gave no message.
    pub(crate) marks: Option<Marks<'a>>,
    /// The turn or person's prompt that this stop belongs to; see [`episode`].
    pub(crate) episode: Option<String>,
    /// What was held and said before.
    pub(crate) latch: Latch,
}

/// What a person switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Nothing: the gate is on.
    On,
    /// The whole suite off.
    Off,
    /// This session PAUSED.
    Paused,
}

/// The session's goal, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// None was ever set.
    None,
    /// To be reached.
    Open {
        /// The goal in words.
        text: String,
        /// The goal's revision.
        revision: u64,
    },
    /// Set aside.
    Paused,
    /// Claimed as reached.
    Done,
    /// It is there but says nothing to us; the reason.
    Unreadable(String),
}

/// One row of the session's ledger that is open or could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its id.
    pub(crate) id: String,
    /// Whether it is a hard one. An unread row may be.
    pub(crate) is_hard: bool,
}

/// The gate's own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Latch {
    /// Read, or not there yet.
    Known {
        /// What the last hold was for.
        held: Option<Parked>,
        /// What the last notice about blocks was for.
        noticed: Option<Parked>,
    },
    /// It is there but says nothing to us; the reason.
    Unreadable(String),
}

/// An episode and the parked state in it. A hold is said once for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parked {
    /// The episode's id.
    pub(crate) episode: String,
    /// Revision of the open goal; none where no goal is open.
    pub(crate) goal_revision: Option<u64>,
    /// Ids of the blocks, sorted.
    pub(crate) blocks: Vec<String>,
}

/// What the gate does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The stop goes through; a notice is shown to the person.
    Allow(Why, Option<Notice>),
    /// The turn goes on, because of this.
    Hold(Missing),
}

/// Why a stop goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Switched off.
    Off,
    /// Paused by a person.
    Paused,
    /// The goal says nothing to us.
    GoalUnreadable,
    /// Neither a goal nor a block.
    NothingOpen,
    /// The goal is set aside.
    GoalPaused,
    /// The goal is claimed as reached.
    GoalDone,
    /// A block is open, and nobody here can say whether a person sees it.
    BlocksUndeterminable,
    /// A background task will wake the session.
    TaskRunning,
    /// An armed wake will wake the session.
    WakeArmed,
    /// `GOAL: m of m`.
    AllReached,
    /// `WAITING ON` names a block of the session; whether it is raised is
    /// undeterminable here.
    WaitsOnBlock,
    /// The client gave no last message.
    NoMessage,
    /// Nobody can say which episode this is.
    NoEpisode,
    /// The latch says nothing to us.
    LatchUnreadable,
    /// Held in this episode already.
    HeldBefore,
}

impl Why {
    /// The reason in words, for the log, `--explain` and `docs/gate.md`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Off => "switched off",
            Self::Paused => "PAUSED by a person",
            Self::GoalUnreadable => "the goal can't be judged",
            Self::NothingOpen => "no open goal and no open hard block",
            Self::GoalPaused => "the goal is paused",
            Self::GoalDone => "the goal is done",
            Self::BlocksUndeterminable => "a hard block is open, whether it is raised is undeterminable",
            Self::TaskRunning => "a background task is running",
            Self::WakeArmed => "a wake is armed",
            Self::AllReached => "the message says that the goal is reached",
            Self::WaitsOnBlock => "waits on a block, whether it is raised is undeterminable",
            Self::NoMessage => "the last message is not known",
            Self::NoEpisode => "the episode is not known",
            Self::LatchUnreadable => "the latch can't be judged",
            Self::HeldBefore => "held once in this episode already",
        }
    }
}

/// What the person is told while the stop goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// These blocks are open; whether their page can be seen is undeterminable.
    Blocks(Vec<String>),
    /// A file of ours can't be judged: which, and why.
    Unreadable(&'static str, String),
}

/// What an open goal was missing at a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// No marker, no task, no wake.
    Park,
    /// `WAITING ON` names nothing of this session.
    Unknown(String),
    /// `GOAL: n of m` with n other than m, or `0 of 0`.
    Progress(Progress),
}

impl Missing {
    /// In words, for the log, `--explain` and `docs/gate.md`.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Park => "the goal is open and nothing is parked",
            Self::Unknown(_) => "the goal is open and WAITING ON names nothing of this session",
            Self::Progress(_) => "the goal is open and GOAL states progress only",
        }
    }
}

/// Decides.
pub(crate) fn decide(world: &World) -> Decision {
    match world.switch {
        Switch::On => {}
        Switch::Off => return Decision::Allow(Why::Off, None),
        Switch::Paused => return Decision::Allow(Why::Paused, None),
    }
    let why_not_open = match &world.goal {
        Goal::Open { .. } => return decide_open(world),
        Goal::Unreadable(why) => {
            let notice = Notice::Unreadable("goal", why.clone());
            return Decision::Allow(Why::GoalUnreadable, Some(notice));
        }
        Goal::None => Why::NothingOpen,
        Goal::Paused => Why::GoalPaused,
        Goal::Done => Why::GoalDone,
    };
    let hard: Vec<String> = world
        .blocks
        .iter()
        .filter(|block| block.is_hard)
        .map(|block| block.id.clone())
        .collect();
    if hard.is_empty() {
        return Decision::Allow(why_not_open, None);
    }
    Decision::Allow(Why::BlocksUndeterminable, notice_once(world, hard))
}

fn decide_open(world: &World) -> Decision {
    if world.has_running_task {
        return Decision::Allow(Why::TaskRunning, None);
    }
    if world.has_armed_wake {
        return Decision::Allow(Why::WakeArmed, None);
    }
    let Some(marks) = &world.marks else {
        return Decision::Allow(Why::NoMessage, None);
    };
    if marks.progress.is_some_and(Progress::is_all) {
        return Decision::Allow(Why::AllReached, None);
    }
    // A task or wake of that id would have let the stop through above.
    let waits_on = |block: &&Block| marks.waiting_on.contains(&block.id.as_str());
    let named: Vec<String> = world
        .blocks
        .iter()
        .filter(waits_on)
        .map(|block| block.id.clone())
        .collect();
    if !named.is_empty() {
        return Decision::Allow(Why::WaitsOnBlock, notice_once(world, named));
    }
    let Some(parked) = parked(world) else {
        return Decision::Allow(Why::NoEpisode, None);
    };
    match &world.latch {
        Latch::Unreadable(why) => {
            let notice = Notice::Unreadable("latch", why.clone());
            Decision::Allow(Why::LatchUnreadable, Some(notice))
        }
        Latch::Known { held: Some(held), .. } if *held == parked => Decision::Allow(Why::HeldBefore, None),
        Latch::Known { .. } => Decision::Hold(missing(marks)),
    }
}

fn missing(marks: &Marks) -> Missing {
    match (marks.waiting_on.last(), marks.progress) {
        (Some(id), _) => Missing::Unknown((*id).to_owned()),
        (None, Some(progress)) => Missing::Progress(progress),
        (None, None) => Missing::Park,
    }
}

/// A notice about blocks, unless it was shown in this episode. Where that can't
/// be known it is shown: a notice holds nobody.
fn notice_once(world: &World, ids: Vec<String>) -> Option<Notice> {
    let is_shown = match (&world.latch, parked(world)) {
        (Latch::Known { noticed, .. }, Some(parked)) => noticed.as_ref() == Some(&parked),
        _ => false,
    };
    (!is_shown).then_some(Notice::Blocks(ids))
}

/// The parked state of this stop: what a hold or a notice is said once for. None where the episode is not known.
pub(crate) fn parked(world: &World) -> Option<Parked> {
    Some(Parked {
        episode: world.episode.clone()?,
        goal_revision: match world.goal {
            Goal::Open { revision, .. } => Some(revision),
            _ => None,
        },
        blocks: world.blocks.iter().map(|block| block.id.clone()).collect(),
    })
}

/// What the episode is told from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clues<'a> {
    /// The lease's last prompt of a person.
    pub(crate) human_prompt: Option<&'a str>,
    /// Whether there is a lease at all.
    pub(crate) has_lease: bool,
    /// The episode of the last hold.
    pub(crate) held: Option<&'a str>,
    /// The payload's prompt id.
    pub(crate) prompt: Option<&'a str>,
    /// The payload's `stop_hook_active`.
    pub(crate) stop_hook_active: Option<bool>,
}

/// The episode: the last prompt of a person, where the lease shows it.
///
/// A lease without one shows that nobody typed since the last hold. Without both
/// the turn stands for the episode, but only where the client says that no hook
/// made it go on. Anything else is unknown.
pub(crate) fn episode(clues: Clues<'_>) -> Option<&str> {
    let turn = || clues.prompt.filter(|_| clues.stop_hook_active == Some(false));
    match clues.human_prompt {
        Some(prompt) => Some(prompt),
        None if clues.has_lease => clues.held.or_else(turn),
        None => turn(),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
