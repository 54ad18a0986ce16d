//! drive-gate: a session with an open goal does not stop half-way in silence.
//!
//! Runs on Stop, in the way of a person's turn. Most sessions have no goal: for
//! them it looks twice and says nothing. It reads no transcript, so it costs the
//! same in a long session as in a new one. Whatever goes wrong in it lets the
//! stop through: a gate that holds the wrong session, or for ever, is worse than
//! none (anthropics/claude-plugins-official#64, #574, #5312).

#![cfg_attr(not(test), no_main)]

mod decide;
mod gather;
mod latch;
mod park;
mod way_out;
mod wording;

use anyhow::Context as _;
use shared::edge::lock;
use shared::hook::{Answer, Call};

use decide::{Decision, Goal, Notice, Why, World};
use gather::Seen;
use latch::Entry;
use way_out::WayOut;

shared::hook_main!("drive-gate", work);

/// How long to wait for another gate of the same session (ms).
const LOCK_WAIT_MS: u64 = 300;

fn work(call: &Call) -> anyhow::Result<Answer> {
    let payload = call.payload;
    // A stop after an API error is StopFailure's; `error` says so too.
    if !payload.is_event("Stop") || payload.is_subagent() || payload.error.is_some() {
        return Ok(Answer::Nothing);
    }
    let seen = gather::look(call);
    if call.explain {
        return explained(call, seen.as_ref().map(|seen| &seen.world));
    }
    let Some(Seen { world, .. }) = seen else {
        return Ok(Answer::Nothing);
    };
    let decision = decide::decide(&world);
    match entry_of(&decision) {
        None => Ok(answer(call, &world, &decision)),
        Some(_) => answer_once(call),
    }
}

/// What is said once is decided again by whoever has the latch to itself: two
/// gates at once, as when installed twice, must not both speak.
fn answer_once(call: &Call) -> anyhow::Result<Answer> {
    let name = format!("session/{}/gate.lock", call.sid);
    let Some(_lock) = lock::take(call.state, &name, LOCK_WAIT_MS)? else {
        call.log("allow: another gate of this session is at work");
        return Ok(Answer::Nothing);
    };
    let Some(Seen { world, latch }) = gather::look(call) else {
        call.log("allow: the goal went away meanwhile");
        return Ok(Answer::Nothing);
    };
    let decision = decide::decide(&world);
    if let (Some(entry), Some(parked)) = (entry_of(&decision), decide::parked(&world)) {
        // Before anything is said: without a latch nobody is held.
        let written = latch::write(call, latch, entry, &parked);
        match entry {
            Entry::Held => written.context("not held, since the latch can't be written")?,
            Entry::Noticed => drop(written),
        }
    }
    Ok(answer(call, &world, &decision))
}

/// What a decision has to remember before it is said.
fn entry_of(decision: &Decision) -> Option<Entry> {
    match decision {
        Decision::Hold(_) => Some(Entry::Held),
        Decision::Allow(_, Some(Notice::Blocks(_))) => Some(Entry::Noticed),
        Decision::Allow(..) => None,
    }
}

/// Logs the decision and gives what the client is told.
fn answer(call: &Call, world: &World, decision: &Decision) -> Answer {
    let episode = world.episode.as_deref().unwrap_or("unknown");
    match decision {
        Decision::Hold(missing) => {
            call.log(&format!("hold: {} (episode {episode})", missing.words()));
            let reason = hold_text(call, world, missing);
            Answer::Json(line(&serde_json::json!({"decision": "block", "reason": reason})))
        }
        Decision::Allow(why, None) => {
            call.log(&format!("allow: {} (episode {episode})", why.words()));
            Answer::Nothing
        }
        Decision::Allow(why, Some(notice)) => {
            let text = wording::notice(notice);
            call.log(&format!("allow: {} (episode {episode}); {text}", why.words()));
            Answer::Json(line(&serde_json::json!({"systemMessage": text})))
        }
    }
}

fn hold_text(call: &Call, world: &World, missing: &decide::Missing) -> String {
    let goal = match &world.goal {
        Goal::Open { text, .. } => text.as_str(),
        _ => "",
    };
    let blocks: Vec<String> = world.blocks.iter().map(|block| block.id.clone()).collect();
    wording::hold(goal, missing, &blocks, &WayOut::of(call))
}

/// `--explain`: the decision as it would fall now, with what it was made from.
fn explained(call: &Call, world: Option<&World>) -> anyhow::Result<Answer> {
    let decision = world.map_or(Decision::Allow(Why::NothingOpen, None), decide::decide);
    let (verdict, reason, said) = match &decision {
        Decision::Hold(missing) => {
            let text = world.map(|world| hold_text(call, world, missing));
            ("hold", missing.words(), text)
        }
        Decision::Allow(why, notice) => ("allow", why.words(), notice.as_ref().map(wording::notice)),
    };
    let parked = world.and_then(decide::parked);
    let explained = serde_json::json!({
        "format": 1,
        "hook": call.name,
        "sid": call.sid.as_str(),
        "decision": verdict,
        "reason": reason,
        "said": said,
        "parked": serde_json::to_value(parked)?,
    });
    Ok(Answer::Json(line(&explained)))
}

fn line(value: &serde_json::Value) -> String {
    format!("{value}\n")
}
