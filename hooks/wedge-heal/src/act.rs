//! The decision, carried out. Intent goes to disk, then the act, then the outcome.

use anyhow::Context;
use shared::edge::config;
use shared::edge::episode::{Episode, Record};
use shared::edge::wedge_file::{self, Act as Counted, LastHeal};
use shared::edge::{clock, recheck, transient};
use shared::hook::{Answer, Call};
use shared::pure::tally::{Room, WAKES};

use shared::restart::intent::Cause;
use shared::restart::{Order, hand_up};

use crate::decide::{Act, Decision, World};
use crate::gather;

/// Carries it out.
///
/// # Errors
/// Nothing could be recorded, so nothing was done.
pub(crate) fn carry_out(call: &Call, world: &World, decision: &Decision) -> anyhow::Result<Answer> {
    let diagnosis = &world.diagnosis;
    call.log(&format!(
        "{:?}: {} ({}, {})",
        decision.act, decision.why, diagnosis.verdict, diagnosis.kind
    ));
    if decision.act == Act::Nothing {
        return Ok(Answer::Nothing);
    }
    let Some(prompt) = call.prompt_id() else {
        return Ok(Answer::Nothing);
    };
    let record = Record {
        actor: crate::NAME.to_owned(),
        claimed_at: call.started,
        error: call.payload.error.as_deref().unwrap_or_default().to_owned(),
        verdict: diagnosis.verdict.to_string(),
        kind: diagnosis.kind.to_owned(),
        fingerprint: diagnosis.fingerprint.clone(),
        why: decision.why.clone(),
        ..Record::default()
    };
    let Some(mut episode) = Episode::claim(call.state, &call.sid, &prompt, record)? else {
        call.log("nothing: another hook has this failure");
        return Ok(Answer::Nothing);
    };
    let (config, why_default) = config::read(call.state);
    if let Some(why) = why_default {
        call.log(&format!("defaults stand in: {why}"));
    }
    match decision.act {
        Act::Nothing => Ok(Answer::Nothing),
        Act::Wait => transient::wait_and_decide(call, &mut episode, &config, &said(&diagnosis.why)),
        Act::Wake => wake(call, world, &mut episode),
        Act::Restart => restart(call, world, &mut episode, decision),
        Act::Signal { state } => {
            episode.intend("none", &decision.why)?;
            let person = person(world, state);
            hand_up::raise(
                call.state,
                &config,
                &call.sid,
                crate::NAME,
                state,
                &decision.why,
                &person,
            )?;
            episode.finish("signalled", &decision.why, clock::now_ms())?;
            Ok(Answer::Nothing)
        }
    }
}

/// A classifier's sentence as a part of another one.
fn said(why: &str) -> String {
    let mut letters = why.trim_end_matches('.').chars();
    match letters.next() {
        // "The API failed" begins small; "API" stays as it is.
        Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => why.trim_end_matches('.').to_owned(),
    }
}

fn last_heal(world: &World, act: &str, now: i64) -> LastHeal {
    LastHeal {
        act: act.to_owned(),
        fingerprint: world.diagnosis.fingerprint.clone().unwrap_or_default(),
        at: now,
    }
}

fn wake(call: &Call, world: &World, episode: &mut Episode) -> anyhow::Result<Answer> {
    let why = &world.diagnosis.why;
    episode.intend("wake", why)?;
    let now = clock::now_ms();
    if let Err(stale) = recheck::still_ours(call) {
        call.log(&format!("left alone: {stale}"));
        episode.finish("stale", &stale, now)?;
        return Ok(Answer::Nothing);
    }
    let last = last_heal(world, "wake", now);
    let room = wedge_file::spend(call.state, &call.sid, Counted::Wake, &WAKES, now, Some(&last))?;
    if room != Room::Free {
        episode.finish("refused", "the session's wakes are used up", now)?;
        return Ok(Answer::Nothing);
    }
    episode.finish("woken", why, now)?;
    let text = format!(
        "the last turn failed: {}. Go on with the work where it stopped.",
        said(why)
    );
    Ok(Answer::Two(recheck::stamped_by("rungs", &text)))
}

/// Puts the intent on disk and starts the helper. What is alive in the client's
/// tree dies with the client, so the helper goes on only when this hook has ended.
fn restart(call: &Call, world: &World, episode: &mut Episode, decision: &Decision) -> anyhow::Result<Answer> {
    episode.intend("restart", &decision.why)?;
    if let Err(stale) = recheck::still_ours(call) {
        call.log(&format!("left alone: {stale}"));
        episode.finish("stale", &stale, clock::now_ms())?;
        return Ok(Answer::Nothing);
    }
    let prompt = call.prompt_id().context("the client did not name the turn")?;
    let told = format!(
        "the process was restarted, because {}. It is the same session. \
         Go on with the work where it stopped.",
        said(&world.diagnosis.why)
    );
    let order = Order {
        state: call.state,
        sid: &call.sid,
        prompt: &prompt,
        failed_at: call.started,
        pid: gather::client_pid().context("the client's pid is not known")?,
        transcript: call.payload.transcript_path.as_deref(),
        rung: crate::NAME,
        cause: Cause::Wedge,
        fingerprint: world.diagnosis.fingerprint.as_deref().unwrap_or_default(),
        why: &episode.record.why,
        told: &told,
        command: &world.command,
    };
    order.write()?;
    order.start_helper()?;
    Ok(Answer::Nothing)
}

/// What a person should do about it.
fn person(world: &World, state: &str) -> String {
    match world.diagnosis.recipe {
        Some(recipe) if state != "exhausted" => recipe.to_owned(),
        _ => format!("Look at the session; to restart it by hand: {}", world.command),
    }
}
