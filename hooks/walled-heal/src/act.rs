//! Carries a decision out: charge, flip, look again, wake.

use anyhow::Context;
use serde_json::json;
use shared::edge::config::Config;
use shared::edge::deadline;
use shared::edge::episode::{Episode, Record};
use shared::edge::recheck::{self, Surface};
use shared::edge::shard::{self, Flip, Outcome};
use shared::edge::signal::{self, Signal};
use shared::edge::wall_file::{self, Move};
use shared::edge::{clock, pool_file, store, transient};
use shared::hook::{Answer, Call, WORKING_PHASE_S};
use shared::pure::diagnosis::Diagnosis;
use shared::pure::pool::{Choice, Pool, Wall};

use crate::afterwards::{self, Left};
use crate::decide::{self, Cause, Next, Plan, World};
use crate::{gather, park, wording};

/// How long a flip waits for the client's own locks, in ms.
const FLIP_WAIT_MS: u64 = 30_000;

/// How long the pool's lock is waited for, in ms. Fifty sessions of one shard
/// hit the wall together; each holds it for a moment.
const POOL_WAIT_MS: u64 = 5_000;

/// The window's name in `pool.json`.
pub(crate) fn window_name(diagnosis: &Diagnosis) -> String {
    diagnosis
        .window
        .map_or_else(|| diagnosis.kind.to_owned(), |window| window.to_string())
}

fn charge(pool: &mut Pool, account: &str, cause: Cause, diagnosis: &Diagnosis, now: i64) {
    match cause {
        Cause::Wall => {
            let wall = Wall {
                seen_at: now,
                resets_at: diagnosis.resets_at,
            };
            pool.note_wall(account, &window_name(diagnosis), wall);
        }
        Cause::DeadLogin => {
            pool.accounts
                .entry(account.to_owned())
                .or_default()
                .needs_login_at = Some(now);
        }
    }
}

/// A sub-agent's wall marks the account and nothing else: the session goes on.
pub(crate) fn charge_for_subagent(call: &Call) -> anyhow::Result<()> {
    let account = gather::own_shard(call).and_then(|shard| gather::account(call, &shard));
    let Some(diagnosis) = gather::subagent_wall(call.payload, call.started) else {
        call.log("a sub-agent failed: not this session's turn");
        return Ok(());
    };
    let Some(account) = account.filter(|_| !call.explain) else {
        call.log("a sub-agent hit the wall; the account is none of ours");
        return Ok(());
    };
    pool_file::change(call.state, POOL_WAIT_MS, |pool| {
        charge(pool, &account, Cause::Wall, &diagnosis, call.started);
    })?;
    call.log(&format!(
        "a sub-agent hit the wall: account {account} is marked, the session untouched"
    ));
    Ok(())
}

/// The decision as JSON, by the code that would act.
pub(crate) fn explain(call: &Call, config: &Config, world: &World, plan: &Plan) -> anyhow::Result<Answer> {
    let diagnosis = &world.diagnosis;
    let mut told = json!({
        "verdict": diagnosis.verdict, "kind": diagnosis.kind, "window": diagnosis.window,
        "resets_at": diagnosis.resets_at, "why": diagnosis.why, "decision": plan,
        "shard": world.shard, "account": world.account,
    });
    if let Plan::LeaveAccount {
        cause,
        charge: charged,
    } = plan
    {
        let mut pool = pool_file::read(call.state)?;
        let from = world.account.as_deref().unwrap_or_default();
        if *charged {
            charge(&mut pool, from, *cause, diagnosis, world.now);
        }
        let choice = pool.choose(&store::accounts(call.state)?, from, world.now);
        let next = serde_json::to_value(decide::next(world, *charged, &choice, config.park_margin_s))?;
        told.as_object_mut()
            .map(|told| told.insert("next".to_owned(), next));
    }
    Ok(Answer::Json(format!("{told}\n")))
}

pub(crate) fn carry_out(call: &Call, config: &Config, world: &World, plan: &Plan) -> anyhow::Result<Answer> {
    if let Plan::Leave { why } = plan {
        call.log(&format!(
            "{} ({}): hands off: {why}",
            world.diagnosis.verdict, world.diagnosis.kind
        ));
        return Ok(Answer::Nothing);
    }
    if recheck::is_paused(call) {
        call.log("PAUSED by a person: hands off");
        return Ok(Answer::Nothing);
    }
    let Some(prompt) = call.prompt_id() else {
        call.log("unknown: the payload has no usable prompt id, so the episode can't be claimed");
        return Ok(Answer::Nothing);
    };
    let record = Record {
        actor: call.name.to_owned(),
        claimed_at: call.started,
        error: call.payload.error.as_deref().unwrap_or_default().to_owned(),
        verdict: world.diagnosis.verdict.to_string(),
        kind: world.diagnosis.kind.to_owned(),
        fingerprint: world.diagnosis.fingerprint.clone(),
        why: world.diagnosis.why.clone(),
        from: world.account.clone(),
        ..Record::default()
    };
    let Some(mut episode) = Episode::claim(call.state, &call.sid, &prompt, record)? else {
        call.log("another run of this hook has the episode");
        return Ok(Answer::Nothing);
    };
    match plan {
        Plan::Leave { .. } => Ok(Answer::Nothing),
        Plan::Signal { state, why, person } => {
            raise(call, config, state, why, person);
            episode.finish("signalled", why, clock::now_ms())?;
            Ok(Answer::Nothing)
        }
        Plan::Throttle { .. } if !world.kind.can_be_waked() => {
            let why = "a one-shot run can't be waked; its caller has the retry";
            raise(
                call,
                config,
                "one-shot",
                why,
                "Run the same command again in a while.",
            );
            episode.finish("signalled", why, clock::now_ms())?;
            call.log(why);
            Ok(Answer::Nothing)
        }
        Plan::Throttle { .. } => {
            transient::wait_and_decide(call, &mut episode, config, "the service limited requests")
        }
        Plan::LeaveAccount { cause, charge } => {
            leave_account(call, config, world, &mut episode, *cause, *charge)
        }
    }
}

fn leave_account(
    call: &Call,
    config: &Config,
    world: &World,
    episode: &mut Episode,
    cause: Cause,
    charged: bool,
) -> anyhow::Result<Answer> {
    let choice = charge_and_choose(call, world, cause, charged)?;
    let next = decide::next(world, charged, &choice, config.park_margin_s);
    match next {
        Next::Wake { why } => {
            episode.intend("wake", &why)?;
            wake(call, config, world, episode, &wording::already_moved())
        }
        Next::Move { from, to } => move_and_wake(call, config, world, episode, cause, &from, &to),
        Next::Park { until_s, why } => park::park(call, config, world, episode, cause, until_s, &why),
    }
}

pub(crate) fn charge_and_choose(
    call: &Call,
    world: &World,
    cause: Cause,
    charged: bool,
) -> anyhow::Result<Choice> {
    let accounts = store::accounts(call.state).context("the accounts can't be read")?;
    let from = world.account.as_deref().unwrap_or_default();
    let now = clock::now_ms();
    if from.is_empty() || !charged {
        return Ok(pool_file::read(call.state)?.choose(&accounts, from, now));
    }
    pool_file::change(call.state, POOL_WAIT_MS, |pool| {
        charge(pool, from, cause, &world.diagnosis, call.started);
        pool.choose(&accounts, from, now)
    })
}

/// Flips the shard and wakes the session on the other account.
pub(crate) fn move_and_wake(
    call: &Call,
    config: &Config,
    world: &World,
    episode: &mut Episode,
    cause: Cause,
    from: &str,
    to: &str,
) -> anyhow::Result<Answer> {
    let shard = world.shard.clone().unwrap_or_default();
    episode.record.to = Some(to.to_owned());
    episode.intend("move", &format!("leaves {from} ({}) for {to}", cause.word()))?;
    let flip = Flip {
        format: 1,
        at: clock::now_ms(),
        shard,
        from: from.to_owned(),
        to: to.to_owned(),
        cause: cause.word().to_owned(),
        sid: Some(call.sid.as_str().to_owned()),
    };
    // Waiting for a refresh is a sleep, not work.
    deadline::rearm(0);
    let outcome = shard::flip(call.state, &flip, FLIP_WAIT_MS);
    deadline::rearm(WORKING_PHASE_S);
    match outcome? {
        Outcome::Flipped => {
            note_move(
                call,
                world,
                Move {
                    at: clock::now_ms(),
                    from: flip.from,
                    to: flip.to,
                    cause: flip.cause,
                },
            );
            if cause == Cause::DeadLogin {
                raise_dead_login(call, config, from);
            }
            let cause = match cause {
                Cause::Wall => format!(
                    "the {} of the account was reached",
                    wording::window(&world.diagnosis)
                ),
                Cause::DeadLogin => "the login of the account is no longer accepted".to_owned(),
            };
            wake(call, config, world, episode, &wording::moved(&cause, from, to))
        }
        Outcome::Lost => wake(call, config, world, episode, &wording::already_moved()),
        Outcome::Busy => {
            let why = "the client kept its lock on the store the whole time";
            let retry = clock::now_ms() / 1000 + 30;
            park::park(call, config, world, episode, cause, Some(retry), why)
        }
    }
}

fn note_move(call: &Call, world: &World, made: Move) {
    let noted = wall_file::read(call.state, &call.sid).and_then(|mut file| {
        "moved".clone_into(&mut file.state);
        file.at = made.at;
        file.window = world.diagnosis.window.map(|window| window.to_string());
        file.resets_at = world.diagnosis.resets_at;
        file.until = None;
        file.moves.push(made);
        wall_file::write(call.state, &call.sid, &file)
    });
    if let Err(why) = noted {
        call.log(&format!("the move could not be noted: {why:#}"));
    }
}

/// The last look, then the wake.
pub(crate) fn wake(
    call: &Call,
    config: &Config,
    world: &World,
    episode: &mut Episode,
    text: &str,
) -> anyhow::Result<Answer> {
    if !world.kind.can_be_waked() {
        let why = "this kind of session can't be waked in place; its next run has the other account";
        raise(
            call,
            config,
            "one-shot",
            why,
            "Run the same command again, or continue with `claude --resume`.",
        );
        episode.finish("moved", why, clock::now_ms())?;
        call.log(why);
        return Ok(Answer::Nothing);
    }
    match recheck::still_ours(call) {
        Err(why) => {
            episode.finish("stale", &why, clock::now_ms())?;
            call.log(&format!("not waked: {why}"));
            Ok(Answer::Nothing)
        }
        Ok(surface) => {
            if surface == Surface::Dialog {
                let why = "a dialog opened before the wake, which is queued behind it";
                raise(
                    call,
                    config,
                    "dialog-open",
                    why,
                    "Close the dialog in the session (Esc); it then goes on by itself.",
                );
            } else {
                signal::clear(call.state, &call.sid, call.name).ok();
            }
            let window = window_name(&world.diagnosis);
            let charged = world
                .account
                .as_deref()
                .filter(|_| world.is_walled() && !world.is_in_doubt());
            afterwards::start(
                call,
                Left {
                    charged: charged.map(|account| (account, window.as_str())),
                    is_waked: true,
                },
            );
            episode.finish("woken", text, clock::now_ms())?;
            call.log(&format!(
                "woken {} ms after the start: {text}",
                clock::now_ms() - call.started
            ));
            Ok(Answer::Two(recheck::stamped(text)))
        }
    }
}

fn raise_dead_login(call: &Call, config: &Config, account: &str) {
    let why = format!("the login of the account {account} is no longer accepted");
    raise(
        call,
        config,
        "needs-login",
        &why,
        &format!("Log in again: ccswitch login {account}"),
    );
}

/// Raises a signal; one that can't be written is a log line, and the heal goes on.
pub(crate) fn raise(call: &Call, config: &Config, state: &str, why: &str, person: &str) {
    let signal = Signal {
        rung: call.name.to_owned(),
        at: clock::now_ms(),
        state: state.to_owned(),
        why: why.to_owned(),
        evidence: call
            .payload
            .prompt_id
            .as_deref()
            .map(str::to_owned)
            .into_iter()
            .collect(),
        person: person.to_owned(),
        ..Signal::default()
    };
    match signal::raise(call.state, config, &call.sid, signal) {
        Ok((true, None)) => call.log(&format!("signal {state}: {why}")),
        Ok((true, Some(trouble))) => call.log(&format!("signal {state}: {why}; {trouble}")),
        Ok((false, _)) => {}
        Err(trouble) => call.log(&format!("signal {state} could not be raised: {trouble:#}")),
    }
}
