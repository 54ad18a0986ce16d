//! The decision, carried out. Intent goes to disk, then the act, then the outcome.

use anyhow::Context;
use shared::edge::config::{self, Config};
use shared::edge::episode::{Episode, Record};
use shared::edge::proc::{self, ProcessId};
use shared::edge::signal::{self, Signal};
use shared::edge::state::State;
use shared::edge::wedge_file::{self, Act as Counted, LastHeal};
use shared::edge::{client_session, clock, env, recheck, spawn, transient};
use shared::hook::{Answer, Call};
use shared::pure::client_argv::{ClientArgv, to_text};
use shared::pure::session_id::SessionId;
use shared::pure::tally::{Room, WAKES};
use shared::pure::time_text;

use crate::decide::{Act, Decision, World};
use crate::gather;
use crate::intent::{self, Intent, Step};
use crate::terminal;

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
            raise(call.state, &config, &call.sid, state, &decision.why, &person)?;
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
    intent(call, world, episode)?.write(call.state)?;
    let mut helper = spawn::command("/proc/self/exe");
    helper
        .arg("--root")
        .arg(call.state.path())
        .arg("--restart")
        .arg(intent::name(&call.sid))
        .current_dir("/");
    env::without_client_variables(&mut helper);
    spawn::start_detached(helper).context("the helper can't be started")?;
    Ok(Answer::Nothing)
}

fn intent(call: &Call, world: &World, episode: &Episode) -> anyhow::Result<Intent> {
    let pid = gather::client_pid().context("the client's pid is not known")?;
    let old = ProcessId::of(pid).context("the client's process can't be read")?;
    let hook = ProcessId::of(proc::own_pid()).context("our own process can't be read")?;
    let found = terminal::of(pid).map_err(anyhow::Error::msg)?;
    let argv = ClientArgv::parse(&proc::argv(pid).unwrap_or_default()).map_err(anyhow::Error::msg)?;
    let cwd = proc::cwd(pid).context("the client's folder can't be read")?;
    let config = client_session::config_dir(call.payload.transcript_path.as_deref())
        .context("the client's own folder is not known")?;
    let store = env::path(env::CLAUDE_SECURESTORAGE_CONFIG_DIR).unwrap_or_else(|| config.clone());
    let text = format!(
        "the process was restarted, because {}. It is the same session. \
         Go on with the work where it stopped.",
        said(&world.diagnosis.why)
    );
    let words = argv.resume(call.sid.as_str(), Some(&recheck::stamped_by("rungs", &text)));
    Ok(Intent {
        format: intent::FORMAT,
        sid: call.sid.as_str().to_owned(),
        prompt_id: call.prompt_id().map_or_else(String::new, |id| id.to_string()),
        failed_at: call.started,
        fingerprint: world.diagnosis.fingerprint.clone().unwrap_or_default(),
        why: episode.record.why.clone(),
        hook,
        old,
        machine: proc::machine_id(),
        pid_namespace: proc::pid_namespace(pid),
        config: to_text(config.as_os_str()),
        store: to_text(store.as_os_str()),
        cwd: to_text(cwd.as_os_str()),
        words: words.iter().map(|word| to_text(word)).collect(),
        socket: to_text(found.pane.socket.as_os_str()),
        pane: found.pane.id,
        form: found.form,
        command: world.command.clone(),
        step: Step::Intended,
        step_at: clock::now_ms(),
        outcome: None,
    })
}

/// What a person should do about it.
fn person(world: &World, state: &str) -> String {
    match world.diagnosis.recipe {
        Some(recipe) if state != "exhausted" => recipe.to_owned(),
        _ => format!("Look at the session; to restart it by hand: {}", world.command),
    }
}

/// Hands the session up, once a state.
///
/// # Errors
/// The signal can't be written.
pub(crate) fn raise(
    state: &State,
    config: &Config,
    sid: &SessionId,
    word: &str,
    why: &str,
    person: &str,
) -> anyhow::Result<()> {
    let wedge = wedge_file::read(state, sid).unwrap_or_default();
    let restarts = wedge.restarts.acts().iter().map(|at| (*at, "restart"));
    let wakes = wedge.wakes.acts().iter().map(|at| (*at, "wake"));
    let waits = wedge.transient_wakes.acts().iter();
    let waits = waits.map(|at| (*at, "wake after a transient failure"));
    let mut tried: Vec<(i64, &str)> = restarts.chain(wakes).chain(waits).collect();
    tried.sort_unstable();
    let recent = tried.iter().rev().take(12).rev();
    let signal = Signal {
        rung: crate::NAME.to_owned(),
        at: clock::now_ms(),
        state: word.to_owned(),
        why: why.to_owned(),
        tried: recent
            .map(|(at, act)| format!("{} {act}", time_text::rfc3339_ms(*at)))
            .collect(),
        evidence: vec![
            format!("session/{sid}/episodes"),
            format!("session/{sid}/debug.log"),
        ],
        person: person.to_owned(),
        ..Signal::default()
    };
    let (is_new, trouble) = signal::raise(state, config, sid, signal)?;
    if is_new {
        shared::edge::debug_log::line(state, Some(sid), crate::NAME, &format!("signalled {word}: {why}"));
    }
    if let Some(trouble) = trouble {
        shared::edge::debug_log::line(state, Some(sid), crate::NAME, &trouble);
    }
    Ok(())
}
