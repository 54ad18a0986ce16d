//! Everything that the decision rests on, read once.

use std::path::Path;

use shared::edge::transcript_file::{self, WINDOW_BYTES, WINDOW_BYTES_MAX};
use shared::edge::wedge_file::{self, LastHeal};
use shared::edge::{client_session, clock, config, env, lease_file, proc, recheck, zone};
use shared::hook::Call;
use shared::pure::client_argv::{self, ClientArgv};
use shared::pure::diagnosis::{self, Diagnosis, Evidence, Heal};
use shared::pure::lease::Kind;
use shared::pure::owner::{self, Owner};
use shared::pure::tally::{self, WAKES};
use shared::pure::transcript::{Tail, Turn};
use shared::restart::terminal;

use crate::decide::{Budgets, World};

/// The failed line is on disk up to 210 ms after the hook's start (measured,
/// 2.1.332).
const LINE_WAIT_MS: u64 = 500;
const LINE_NAP_MS: u64 = 25;

/// Why this event is not wedge-heal's at all, if so.
pub(crate) fn not_ours(call: &Call) -> Option<String> {
    let payload = call.payload;
    if !payload.is_event("StopFailure") {
        return Some("not mine: no StopFailure".into());
    }
    if payload.is_subagent() {
        return Some("not mine: a sub-agent failed, the session itself goes on".into());
    }
    let error = payload.error.as_deref();
    (owner::owner(error) == Owner::WalledHeal).then(|| {
        let error = error.unwrap_or_default();
        format!("not mine: {error} is walled-heal's")
    })
}

/// Looks at everything.
pub(crate) fn world(call: &Call) -> World {
    let pid = client_pid();
    let argv = pid.and_then(proc::argv).unwrap_or_default();
    let kind = kind(call, pid, &argv);
    let diagnosis = diagnose(call, kind);
    // The pane is asked only where the answer can matter.
    let may_restart = matches!(diagnosis.heal, Heal::Restart | Heal::Wake);
    let command = ClientArgv::parse(&argv);
    let restartable = match (&command, kind, pid) {
        _ if !may_restart => Err("not looked at".into()),
        (Err(why), ..) => Err(why.clone()),
        (Ok(_), Kind::Terminal, Some(pid)) => terminal::of(pid).map(drop),
        (Ok(_), Kind::Background, _) => Err("a background session is not restarted from a hook".into()),
        (Ok(_), ..) => Err("the program that drives the session owns its process".into()),
    };
    World {
        is_stopped: call.is_off() || recheck::is_paused(call),
        has_prompt_id: call.prompt_id().is_some(),
        kind,
        diagnosis,
        last: last(call),
        budgets: budgets(call),
        restartable,
        command: person_command(call, pid, command.ok().as_ref()),
    }
}

/// The client's process: named by the client, else our parent.
pub(crate) fn client_pid() -> Option<i32> {
    let named = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    named.or_else(|| proc::parent_of(proc::own_pid()))
}

fn kind(call: &Call, pid: Option<i32>, argv: &[std::ffi::OsString]) -> Kind {
    let registered = pid.and_then(|pid| {
        let config = client_session::config_dir(call.payload.transcript_path.as_deref())?;
        client_session::read(&config, pid).ok().flatten()
    });
    let is_background = env::is_set(env::CLAUDE_JOB_DIR)
        || registered.is_some_and(|session| session.kind.as_deref() == Some("bg"));
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let seen = Kind::of(&words, is_background);
    if seen != Kind::Unknown {
        return seen;
    }
    // No process table to read (macOS): what session-lease saw at the start.
    let lease = lease_file::read(call.state, &call.sid).ok().flatten();
    let kind = lease
        .and_then(|lease| lease.host)
        .map_or(Kind::Unknown, |host| host.kind);
    let is_terminal = env::text(env::CLAUDE_CODE_ENTRYPOINT).as_deref() == Some("cli");
    if kind == Kind::Unknown && is_terminal {
        return Kind::Terminal;
    }
    kind
}

/// The diagnosis, from the failed line where it comes in time, else from the
/// payload. A one-shot run is over 0.1 s after the hook's start (measured,
/// 2.1.332): there the payload alone has to do.
fn diagnose(call: &Call, kind: Kind) -> Diagnosis {
    let zone = zone::name();
    let path = call.payload.transcript_path.as_deref();
    let Some(path) = path.filter(|_| kind != Kind::OneShot) else {
        return diagnosis::diagnose_payload(call.payload, call.started, zone.as_deref());
    };
    let mut window = WINDOW_BYTES;
    let mut waited = 0;
    loop {
        let (bytes, whole) = match transcript_file::read_tail(Path::new(path), window) {
            Ok(read) => read,
            Err(why) => {
                call.log(&format!("by the payload alone: {why}"));
                return diagnosis::diagnose_payload(call.payload, call.started, zone.as_deref());
            }
        };
        let tail = Tail::from_bytes(&bytes, whole);
        let turn = tail.turn();
        let is_there = matches!(
            turn,
            Turn::Failed(_) | Turn::CompactionFailed(_) | Turn::Interrupted | Turn::AsksPerson
        );
        if turn == Turn::Unseen && !whole && window < WINDOW_BYTES_MAX {
            window = WINDOW_BYTES_MAX;
        } else if is_there || waited >= LINE_WAIT_MS {
            return diagnosis::diagnose(Evidence {
                payload: Some(call.payload),
                tail: &tail,
                observed: None,
                now_ms: clock::now_ms(),
                zone: zone.as_deref(),
            });
        } else {
            clock::sleep_ms(LINE_NAP_MS);
            waited += LINE_NAP_MS;
        }
    }
}

/// The newest heal, unless a turn ended well since: then it did its work.
fn last(call: &Call) -> Option<LastHeal> {
    let last = wedge_file::read(call.state, &call.sid).ok()?.last?;
    let lease = lease_file::read(call.state, &call.sid).ok().flatten();
    let good = lease.and_then(|lease| lease.last_stop_at);
    (good.is_none_or(|good| good < last.at)).then_some(last)
}

fn budgets(call: &Call) -> Result<Budgets, String> {
    let wedge = wedge_file::read(call.state, &call.sid).map_err(|why| format!("{why:#}"))?;
    let (config, _) = config::read(call.state);
    let now = clock::now_ms();
    let restarts = tally::session_restarts(config.restarts_per_day_max);
    Ok(Budgets {
        wake: wedge.wakes.room(now, &WAKES),
        restart: wedge.restarts.room(now, &restarts),
    })
}

/// What a person types to restart the session by hand.
fn person_command(call: &Call, pid: Option<i32>, argv: Option<&ClientArgv>) -> String {
    let plain = ClientArgv {
        program: vec!["claude".into()],
        kept: Vec::new(),
    };
    let words = argv.unwrap_or(&plain).resume(call.sid.as_str(), None);
    let line = client_argv::shell_line(&words);
    match pid.and_then(proc::cwd) {
        Some(cwd) => format!("cd {} && {line}", client_argv::shell_line(&[cwd.into()])),
        None => line,
    }
}
