//! A session that no account can take now waits, as a sleeping hook, until its
//! window opens again or an account frees, whichever is first.
//!
//! It wakes in short slices, so that a laptop's sleep costs nothing, and looks at
//! everything anew each time: a person's prompt, a `/clear`, an exit, the client's
//! own continuation all end the wait in silence.

use std::path::Path;

use shared::edge::config::Config;
use shared::edge::episode::Episode;
use shared::edge::transcript_file::{self, WINDOW_BYTES, WINDOW_BYTES_MAX};
use shared::edge::{clock, deadline, pool_file, recheck, store, wall_file};
use shared::hook::{Answer, Call, WORKING_PHASE_S};
use shared::pure::transcript::{Tail, Turn};

use crate::afterwards::{self, Left};
use crate::decide::{self, Cause, Next, World};
use crate::{act, gather, wording};

/// Length of a slice, in ms.
const SLICE_MS: i64 = 5_000;

pub(crate) fn park(
    call: &Call,
    config: &Config,
    world: &World,
    episode: &mut Episode,
    cause: Cause,
    until_s: Option<i64>,
    why: &str,
) -> anyhow::Result<Answer> {
    let world = &gather::with_exact_reset(call, world);
    let why = format!("{why}; waits until {}", wording::until(until_s));
    let person = match cause {
        Cause::Wall => {
            "Nothing: it goes on by itself. `ccswitch login <name>` adds an account that frees it now."
        }
        Cause::DeadLogin => "Log in again with `ccswitch login <name>`, or with /login in the session.",
    };
    act::raise(call, config, "parked", &why, person);
    call.log(&format!("parked: {why}"));
    let nothing_frees_it = world.account.is_none() && world.diagnosis.resets_at.is_none();
    if nothing_frees_it || !world.kind.can_be_waked() {
        episode.finish("signalled", &why, clock::now_ms())?;
        return Ok(Answer::Nothing);
    }
    episode.intend("park", &why)?;
    note_parked(call, world, until_s);
    if let Some(account) = world.account.as_deref().filter(|_| cause == Cause::Wall) {
        let window = act::window_name(&world.diagnosis);
        afterwards::start(
            call,
            Left {
                charged: Some((account, &window)),
                is_waked: false,
            },
        );
    }
    loop {
        sleep_slice(until_s);
        if let Err(why) = still_parked(call) {
            episode.finish("stale", &why, clock::now_ms())?;
            call.log(&format!("not waked: {why}"));
            return Ok(Answer::Nothing);
        }
        if let Some(answer) = go_on(call, config, world, episode, cause)? {
            return Ok(answer);
        }
    }
}

fn sleep_slice(until_s: Option<i64>) {
    let left = until_s.map_or(SLICE_MS, |until| {
        until.saturating_mul(1000).saturating_sub(clock::now_ms())
    });
    deadline::rearm(0);
    clock::sleep_ms(u64::try_from(left.clamp(500, SLICE_MS)).unwrap_or(500));
    deadline::rearm(WORKING_PHASE_S);
}

/// The way on, if there is one now.
fn go_on(
    call: &Call,
    config: &Config,
    world: &World,
    episode: &mut Episode,
    cause: Cause,
) -> anyhow::Result<Option<Answer>> {
    let account = world
        .shard
        .as_deref()
        .and_then(|shard| gather::account(call, shard));
    if account != world.account {
        episode.intend("wake", "the shard was moved to another account")?;
        return act::wake(call, config, world, episode, &wording::already_moved()).map(Some);
    }
    let world = World {
        now: clock::now_ms(),
        ..world.clone()
    };
    if let Some(from) = account.as_deref() {
        let choice = act::charge_and_choose(call, &world, cause, false)?;
        if let Next::Move { to, .. } = decide::next(&world, true, &choice, config.park_margin_s) {
            return act::move_and_wake(call, config, &world, episode, cause, from, &to).map(Some);
        }
    }
    if is_open_again(call, config, &world, cause, account.as_deref())? {
        let text = match cause {
            Cause::Wall => wording::reset(wording::window(&world.diagnosis)),
            Cause::DeadLogin => wording::logged_in(),
        };
        episode.intend("wake", "the account can be used again")?;
        return act::wake(call, config, &world, episode, &text).map(Some);
    }
    Ok(None)
}

/// Whether the session's own account can be used again: by the clock where the
/// reset is known, else by what the pool and the store say.
fn is_open_again(
    call: &Call,
    config: &Config,
    world: &World,
    cause: Cause,
    account: Option<&str>,
) -> anyhow::Result<bool> {
    if let (Cause::Wall, Some(resets_at)) = (cause, world.diagnosis.resets_at) {
        let margin = i64::try_from(config.park_margin_s).unwrap_or(i64::MAX);
        return Ok(world.now / 1000 >= resets_at.saturating_add(margin));
    }
    let Some(account) = account else {
        return Ok(false);
    };
    let login = store::login(&store::path(call.state, account));
    Ok(pool_file::read(call.state)?
        .unusable(account, &login, world.now)
        .is_none())
}

/// Whether the session still stands at the failure, by the client's register, the
/// lease and the transcript.
fn still_parked(call: &Call) -> Result<(), String> {
    recheck::still_ours(call)?;
    let path = call
        .payload
        .transcript_path
        .as_deref()
        .ok_or("the payload names no transcript")?;
    for window in [WINDOW_BYTES, WINDOW_BYTES_MAX] {
        let (bytes, whole) =
            transcript_file::read_tail(Path::new(path), window).map_err(|why| why.to_string())?;
        let tail = Tail::from_bytes(&bytes, whole);
        match tail.turn() {
            Turn::Failed(at) if is_cancelled_after(&tail, at) => {
                return Err("a person cancelled the wait (Esc)".into());
            }
            Turn::Failed(_) => return Ok(()),
            Turn::Unseen if !whole => {}
            turn => return Err(format!("the conversation went on ({turn:?})")),
        }
    }
    Err("the transcript's end shows no conversation".into())
}

/// Esc in a session that waits for its 5-hour reset leaves only this line
/// (measured, 2.1.332).
fn is_cancelled_after(tail: &Tail, failed: usize) -> bool {
    tail.lines.iter().skip(failed).any(|line| {
        line.subtype.as_deref() == Some("informational")
            && line
                .content
                .as_deref()
                .is_some_and(|text| text.starts_with("Automatic continue cancelled"))
    })
}

fn note_parked(call: &Call, world: &World, until_s: Option<i64>) {
    let noted = wall_file::read(call.state, &call.sid).and_then(|mut file| {
        "parked".clone_into(&mut file.state);
        file.at = clock::now_ms();
        file.window = world.diagnosis.window.map(|window| window.to_string());
        file.resets_at = world.diagnosis.resets_at;
        file.until = until_s;
        wall_file::write(call.state, &call.sid, &file)
    });
    if let Err(why) = noted {
        call.log(&format!("the wait could not be noted: {why:#}"));
    }
}
