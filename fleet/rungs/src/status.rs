//! `rungs status`: what the files say, and how much of them could not be read.
//!
//! Facts only: who is "working" is the pulse's to say, not ours.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use shared::edge::signal::Signal;
use shared::edge::state::State;
use shared::edge::{clock, episode, lease_file, pool_file, shard, signal};
use shared::pure::lease::Lease;
use shared::pure::session_id::SessionId;
use shared::pure::time_text::{rfc3339_ms, rfc3339_s};

use crate::places::RootOption;
use crate::{out, switch};

/// Longest foreign text that is shown, in characters.
const TEXT_MAX: usize = 120;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    root: RootOption,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was read, and what could not be.
#[derive(Default)]
struct View {
    sessions: Vec<Session>,
    signals: Vec<(Signal, bool)>,
    walls: Vec<(String, String, String)>,
    shards: Vec<(String, String)>,
    unread: Vec<String>,
}

struct Session {
    sid: SessionId,
    lease: Option<Lease>,
    episodes: Vec<(String, episode::Record)>,
}

impl Session {
    /// The episode under way, if the newest one has no outcome yet.
    fn under_way(&self) -> Option<&episode::Record> {
        let newest = self.episodes.last().map(|(_, record)| record)?;
        newest.outcome.is_none().then_some(newest)
    }

    fn is_parked(&self) -> bool {
        self.under_way()
            .is_some_and(|record| record.intent.as_deref() == Some("park"))
    }

    /// The newest fact of the lease, in words.
    fn last_fact(&self) -> String {
        let Some(lease) = &self.lease else {
            return "no lease could be read".to_owned();
        };
        if let Some((reason, at)) = &lease.ended {
            return format!("ended ({}) {}", out::bounded(reason, TEXT_MAX), rfc3339_ms(*at));
        }
        if let Some(what) = &lease.waiting {
            return format!("told a person: {}", out::bounded(what, TEXT_MAX));
        }
        let prompt = lease.last_prompt.as_ref().map(|seen| seen.at);
        match (prompt, lease.last_stop_at) {
            (Some(prompt), Some(stop)) if stop >= prompt => {
                format!("last turn ended well {}", rfc3339_ms(stop))
            }
            (Some(prompt), _) => format!("prompt {}, no good end since", rfc3339_ms(prompt)),
            (None, Some(stop)) => format!("last turn ended well {}", rfc3339_ms(stop)),
            (None, None) => format!("seen {}", rfc3339_ms(lease.renewed_at)),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = args.root.path()?;
    let state = args.root.open_existing()?;
    let view = state.as_ref().map_or_else(View::default, read);
    let off = state.as_ref().is_some_and(|state| state.exists(switch::OFF));
    if args.json {
        out::json(&as_json(&view, &root.to_string_lossy(), state.is_some(), off));
        return Ok(ExitCode::SUCCESS);
    }
    if state.is_none() {
        out::line(&format!(
            "{} is not there: nothing was looked at.",
            root.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    out::line(if off {
        "Switched OFF: no hook acts until `rungs on`."
    } else {
        "Switched on."
    });
    print(&view);
    Ok(ExitCode::SUCCESS)
}

fn read(state: &State) -> View {
    let mut view = View::default();
    for name in listed(state, "session", &mut view.unread) {
        let Some(sid) = SessionId::parse(&name) else {
            view.unread.push(format!(
                "session/{}: no session id",
                out::bounded(&name, TEXT_MAX)
            ));
            continue;
        };
        let lease = lease_file::read(state, &sid).unwrap_or_else(|why| {
            view.unread.push(format!("session/{sid}/lease.jsonl: {why}"));
            None
        });
        if let Some(lines) = lease.as_ref().map(|lease| lease.unread_lines).filter(|n| *n > 0) {
            view.unread
                .push(format!("session/{sid}/lease.jsonl: {lines} lines"));
        }
        let (episodes, lost) = episode::all(state, &sid).unwrap_or_else(|why| {
            view.unread.push(format!("session/{sid}/episodes: {why}"));
            (Vec::new(), 0)
        });
        if lost > 0 {
            view.unread
                .push(format!("session/{sid}/episodes: {lost} records"));
        }
        view.sessions.push(Session { sid, lease, episodes });
    }
    view.sessions
        .sort_by_key(|session| std::cmp::Reverse(session.lease.as_ref().map_or(0, |lease| lease.renewed_at)));
    for name in listed(state, "signals", &mut view.unread) {
        // The rest are the `.seen` beside them and files still being written.
        if name.strip_suffix(".json").is_none() {
            continue;
        }
        let path = format!("signals/{name}");
        let bytes = state.read(&path).ok().flatten();
        match bytes.and_then(|bytes| serde_json::from_slice::<Signal>(&bytes).ok()) {
            Some(found) if found.format <= signal::FORMAT => {
                view.signals.push((found, state.exists(&format!("{path}.seen"))));
            }
            _ => view.unread.push(path),
        }
    }
    match pool_file::read(state) {
        Ok(pool) => {
            let now_s = clock::now_ms() / 1000;
            for (account, known) in pool.accounts {
                for (window, wall) in known.walls {
                    if wall.out_until_s() > now_s {
                        view.walls
                            .push((account.clone(), window, rfc3339_s(wall.out_until_s())));
                    }
                }
            }
        }
        Err(why) => view.unread.push(format!("pool.json: {why}")),
    }
    for name in listed(state, "shards", &mut view.unread) {
        match shard::account(state, &name) {
            Ok(Some(account)) => view.shards.push((name, account)),
            Ok(None) => {}
            Err(why) => view.unread.push(format!("shards/{name}: {why}")),
        }
    }
    view
}

fn listed(state: &State, folder: &str, unread: &mut Vec<String>) -> Vec<String> {
    state.list(folder).unwrap_or_else(|why| {
        unread.push(format!("{folder}: {why}"));
        Vec::new()
    })
}

fn print(view: &View) {
    for (shard, account) in &view.shards {
        out::line(&format!("shard {shard} -> account {account}"));
    }
    for (account, window, until) in &view.walls {
        out::line(&format!(
            "wall  {account} ({}) until {until}",
            out::bounded(window, TEXT_MAX)
        ));
    }
    for session in &view.sessions {
        let host = session.lease.as_ref().and_then(|lease| lease.host.as_ref());
        let cwd = host
            .and_then(|host| host.cwd.as_deref())
            .unwrap_or("folder not known");
        out::line(&format!(
            "{}  {}  {}{}",
            session.sid,
            session.last_fact(),
            out::bounded(cwd, TEXT_MAX),
            if session.is_parked() { "  PARKED" } else { "" },
        ));
        if let Some((_, last)) = session.episodes.last() {
            out::line(&format!("  {}", told(last)));
        }
    }
    for (signal, seen) in &view.signals {
        out::line(&format!(
            "SIGNAL {} {} {}{}: {}",
            out::bounded(&signal.sid, TEXT_MAX),
            out::bounded(&signal.rung, TEXT_MAX),
            out::bounded(&signal.state, TEXT_MAX),
            if *seen { " (seen)" } else { "" },
            out::bounded(&signal.why, TEXT_MAX),
        ));
        if !signal.person.is_empty() {
            out::line(&format!("  do: {}", out::bounded(&signal.person, 2 * TEXT_MAX)));
        }
    }
    out::line(&format!(
        "{} sessions seen, {} parked, {} walls, {} signals; {} things could not be read.",
        view.sessions.len(),
        view.sessions.iter().filter(|session| session.is_parked()).count(),
        view.walls.len(),
        view.signals.len(),
        view.unread.len(),
    ));
    for what in &view.unread {
        out::line(&format!("  not read: {}", out::bounded(what, 2 * TEXT_MAX)));
    }
}

/// An episode in one line.
pub(crate) fn told(record: &episode::Record) -> String {
    let moved = match (&record.from, &record.to) {
        (Some(from), Some(to)) => format!(" from {from} to {to}"),
        _ => String::new(),
    };
    let text = format!(
        "{} {} on {} ({}): {}{moved}, {}; {}",
        rfc3339_ms(record.claimed_at),
        record.actor,
        record.error,
        record.verdict,
        record.intent.as_deref().unwrap_or("nothing intended yet"),
        record.outcome.as_deref().unwrap_or("no outcome yet"),
        record.why
    );
    out::bounded(&text, 4 * TEXT_MAX)
}

fn as_json(view: &View, root: &str, looked: bool, off: bool) -> Value {
    let sessions: Vec<Value> = view
        .sessions
        .iter()
        .map(|session| {
            let lease = session.lease.as_ref();
            let host = lease.and_then(|lease| lease.host.as_ref());
            json!({
                "sid": session.sid.as_str(),
                "renewed_at": lease.map(|lease| rfc3339_ms(lease.renewed_at)),
                "fact": session.last_fact(),
                "ended": lease.and_then(|lease| lease.ended.as_ref()).map(|(reason, _)| out::bounded(reason, TEXT_MAX)),
                "waiting": lease.and_then(|lease| lease.waiting.as_deref()).map(|what| out::bounded(what, TEXT_MAX)),
                "pid": host.map(|host| host.pid),
                "cwd": host.and_then(|host| host.cwd.as_deref()).map(|cwd| out::bounded(cwd, TEXT_MAX)),
                "parked": session.is_parked(),
                "episodes": session.episodes.len(),
                "last_episode": session.episodes.last().map(|(_, record)| record),
            })
        })
        .collect();
    json!({
        "format": 1,
        "at": rfc3339_ms(clock::now_ms()),
        "root": root,
        "looked": looked,
        "off": off,
        "sessions": sessions,
        "shards": view.shards.iter().map(|(shard, account)| json!({"shard": shard, "account": account})).collect::<Vec<_>>(),
        "walls": view.walls.iter().map(|(account, window, until)| json!({"account": account, "window": window, "until": until})).collect::<Vec<_>>(),
        "signals": view.signals.iter().map(|(signal, seen)| json!({"signal": signal, "seen": seen})).collect::<Vec<_>>(),
        "not_read": view.unread,
    })
}
