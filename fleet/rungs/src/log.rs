//! `rungs log <sid>`: after the fact, what was done for a session, what was not,
//! and why. Reads the session's own files; prints our own words only, since the
//! logs hold no prompt and no answer.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use shared::edge::shard::{FLIPS, Flip};
use shared::edge::state::State;
use shared::edge::{episode, lease_file, signal};
use shared::pure::lease;
use shared::pure::proof;
use shared::pure::session_id::SessionId;
use shared::pure::time_text::rfc3339_ms;

use crate::places::RootOption;
use crate::{out, status};

/// How much of the end of an unbounded file is read, in bytes.
const TAIL_BYTES: usize = 4 << 20;

/// Longest line that is shown, in characters.
const LINE_MAX: usize = 2000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The session's id, or a beginning of it that fits one session only
    sid: String,
    #[command(flatten)]
    root: RootOption,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = args.root.path()?;
    let Some(state) = args.root.open_existing()? else {
        bail!("{} is not there; name the state root with --root", root.display());
    };
    let sid = find(&state, &args.sid)?;
    let mut unread = Vec::new();
    out::line(&format!("Session {sid}"));

    out::line("Turn boundaries:");
    print_boundaries(&state, &sid, &mut unread);

    out::line("What each hook saw, decided and did:");
    let mut lines = 0;
    for name in ["debug.log.1", "debug.log"] {
        lines += print_lines(&state, &format!("session/{sid}/{name}"), &mut unread);
    }
    if lines == 0 {
        out::line("  nothing is recorded");
    }

    out::line("Failed turns that a hook took on:");
    match episode::all(&state, &sid) {
        Ok((episodes, lost)) => {
            let lease = lease_lines(&state, &sid);
            let failures: Vec<i64> = episodes.iter().map(|(_, record)| record.claimed_at).collect();
            for (prompt, record) in &episodes {
                out::line(&format!("  {prompt} {}", status::told(record)));
                if let Some(done_at) = continued_at(record) {
                    out::line(&format!("    {}", proof::of(done_at, &lease, &failures).words()));
                }
            }
            if episodes.is_empty() {
                out::line("  none");
            }
            if lost > 0 {
                unread.push(format!("{lost} episodes"));
            }
        }
        Err(why) => unread.push(format!("episodes: {why}")),
    }

    print_flips(&state, &sid, &mut unread);
    print_files(&state, &sid, &mut unread);
    for what in &unread {
        out::line(&format!("Could not be read: {}", out::bounded(what, LINE_MAX)));
    }
    Ok(ExitCode::SUCCESS)
}

/// When the episode continued the session, if it did.
fn continued_at(record: &episode::Record) -> Option<i64> {
    let continued = matches!(record.outcome.as_deref(), Some("woken" | "restarted"));
    record.done_at.filter(|_| continued)
}

fn lease_lines(state: &State, sid: &SessionId) -> Vec<lease::Line> {
    let read = state.read_tail(&lease_file::name(sid), TAIL_BYTES).ok().flatten();
    let bytes = read.map(|(bytes, _)| bytes).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// The session that an id or its beginning names.
fn find(state: &State, wanted: &str) -> Result<SessionId> {
    let shown = out::bounded(wanted, 80);
    if SessionId::parse(wanted).is_none() {
        bail!("{shown:?} is no session id; `rungs status` lists them");
    }
    let names = state.list("session").context("the sessions can't be listed")?;
    let mut fitting = names.iter().filter(|name| name.starts_with(wanted));
    let exact = names.iter().find(|name| *name == wanted);
    let name = match (exact, fitting.next(), fitting.next()) {
        (Some(name), _, _) | (None, Some(name), None) => name,
        (None, None, _) => bail!("no session {shown} was seen; `rungs status` lists those that were"),
        (None, Some(_), Some(_)) => bail!("{shown} fits several sessions; give more of it"),
    };
    SessionId::parse(name).with_context(|| format!("{shown} names no session's folder"))
}

fn print_boundaries(state: &State, sid: &SessionId, unread: &mut Vec<String>) {
    let name = lease_file::name(sid);
    let (bytes, whole) = match state.read_tail(&name, TAIL_BYTES) {
        Ok(Some(read)) => read,
        Ok(None) => return out::line("  no lease"),
        Err(why) => return unread.push(format!("{name}: {why}")),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lost = 0;
    for line in text.lines().skip(usize::from(!whole)) {
        let Ok(line) = serde_json::from_str::<lease::Line>(line) else {
            lost += 1;
            continue;
        };
        let event = serde_json::to_value(line.event).unwrap_or_default();
        let told = format!(
            "  {} {} {} {}",
            rfc3339_ms(line.at),
            event.as_str().unwrap_or_default(),
            line.what.as_deref().unwrap_or_default(),
            line.prompt_id.as_deref().unwrap_or_default(),
        );
        out::line(out::bounded(&told, LINE_MAX).trim_end());
    }
    if lost > 0 {
        unread.push(format!("{lost} lines of {name}"));
    }
}

fn print_lines(state: &State, name: &str, unread: &mut Vec<String>) -> usize {
    match state.read_tail(name, TAIL_BYTES) {
        Ok(None) => 0,
        Ok(Some((bytes, whole))) => {
            if !whole {
                out::line("  (older lines are left out)");
            }
            let text = String::from_utf8_lossy(&bytes);
            for line in text.lines().skip(usize::from(!whole)) {
                out::line(&format!("  {}", out::bounded(line, LINE_MAX)));
            }
            text.lines().count()
        }
        Err(why) => {
            unread.push(format!("{name}: {why}"));
            0
        }
    }
}

fn print_flips(state: &State, sid: &SessionId, unread: &mut Vec<String>) {
    let bytes = match state.read_tail(FLIPS, TAIL_BYTES) {
        Ok(None) => return,
        Ok(Some((bytes, _))) => bytes,
        Err(why) => return unread.push(format!("{FLIPS}: {why}")),
    };
    let text = String::from_utf8_lossy(&bytes);
    let flips = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Flip>(line).ok())
        .filter(|flip| flip.sid.as_deref() == Some(sid.as_str()));
    for flip in flips {
        let told = format!(
            "Flip {}: shard {} from {} to {} ({})",
            rfc3339_ms(flip.at),
            flip.shard,
            flip.from,
            flip.to,
            flip.cause
        );
        out::line(&out::bounded(&told, LINE_MAX));
    }
}

/// The state files as they are: tallies, the wall, the latch, the signals.
fn print_files(state: &State, sid: &SessionId, unread: &mut Vec<String>) {
    let mut names: Vec<String> = ["wall.json", "wedge.json", "gate.json"]
        .iter()
        .map(|name| format!("session/{sid}/{name}"))
        .collect();
    names.extend(["walled-heal", "wedge-heal"].map(|rung| signal::name(sid, rung)));
    for name in names {
        let value = match state.read(&name) {
            Ok(None) => continue,
            Ok(Some(bytes)) => serde_json::from_slice::<serde_json::Value>(&bytes).ok(),
            Err(_) => None,
        };
        match value {
            Some(value) => out::line(&format!("{name}: {}", out::bounded(&value.to_string(), LINE_MAX))),
            None => unread.push(name),
        }
    }
}
