//! What the session and the person read. `docs/gate.md` prints these texts, and
//! a test compares them word for word.

use std::fmt::Write as _;

use crate::decide::{Missing, Notice};
use crate::way_out::WayOut;

/// Longest part of a goal that is repeated, in characters.
const GOAL_CHARS_MAX: usize = 300;

/// What the session reads when it is held: what is open, what was missing, and
/// every way out that exists.
pub(crate) fn hold(goal: &str, missing: &Missing, blocks: &[String], way_out: &WayOut) -> String {
    let WayOut { program, options } = way_out;
    let goal = shortened(goal);
    let missing = match missing {
        Missing::Park => {
            "no background task is running, no wake is armed, and the message has no park".to_owned()
        }
        Missing::Unknown(id) => format!(
            "`WAITING ON {id}` names no running background task, no armed wake and no open block of this session"
        ),
        Missing::Progress(progress) => format!(
            "`GOAL: {} of {}` states progress, not that the goal is reached",
            progress.reached, progress.of
        ),
    };
    let mut text = format!(
        "rungs: the goal of this session is still open: {goal}\n\
         Missing: {missing}.\n\
         Any one of these lets the turn end:\n\
         - Finish the goal, then run `{program} goal done{options}`.\n\
         - Set it aside: run `{program} goal pause{options}`.\n\
         - Wait on something that will wake the session: end the message with the line `WAITING ON <id>`, \
         where <id> is a running background task, an armed wake or a raised block of this session.\n\
         - If all of it is reached, end the message with the line `GOAL: m of m`, with the number of its parts for m.\n"
    );
    if !blocks.is_empty() {
        // Writing to a string can't fail.
        writeln!(text, "Open blocks of this session: {}.", listed(blocks)).ok();
    }
    text.push_str("This is said once until a person writes or the goal or the blocks change.");
    text
}

/// What the person reads while the stop goes through.
pub(crate) fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Blocks(ids) => format!(
            "rungs: {} block(s) of this session open: {}. Whether their decision page can be seen is \
             undeterminable here, so the session was let go.",
            ids.len(),
            listed(ids)
        ),
        Notice::Unreadable(what, why) => {
            format!("rungs: the {what} of this session can't be judged, so it is not held: {why}.")
        }
    }
}

fn listed(ids: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = ids
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if ids.len() > SHOWN {
        // Writing to a string can't fail.
        write!(text, " and {} more", ids.len() - SHOWN).ok();
    }
    text
}

fn shortened(goal: &str) -> String {
    let words = goal.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text: String = words
        .chars()
        .filter(|c| !c.is_control())
        .take(GOAL_CHARS_MAX)
        .collect();
    if words.chars().count() > GOAL_CHARS_MAX {
        text.push('…');
    }
    text
}
