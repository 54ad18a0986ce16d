//! A session is handed up with all that was tried on it.

use crate::edge::config::Config;
use crate::edge::signal::{self, Signal};
use crate::edge::state::State;
use crate::edge::{clock, debug_log, wedge_file};
use crate::pure::session_id::SessionId;
use crate::pure::time_text;

/// Acts that a signal lists at the most, the newest.
const TRIED_MAX: usize = 12;

/// Hands the session up in the name of `rung`, once a state.
///
/// # Errors
/// The signal can't be written.
pub fn raise(
    state: &State,
    config: &Config,
    sid: &SessionId,
    rung: &str,
    word: &str,
    why: &str,
    person: &str,
) -> anyhow::Result<()> {
    let signal = Signal {
        rung: rung.to_owned(),
        at: clock::now_ms(),
        state: word.to_owned(),
        why: why.to_owned(),
        tried: tried(state, sid),
        evidence: vec![
            format!("session/{sid}/episodes"),
            format!("session/{sid}/debug.log"),
        ],
        person: person.to_owned(),
        ..Signal::default()
    };
    let (is_new, trouble) = signal::raise(state, config, sid, signal)?;
    if is_new {
        debug_log::line(state, Some(sid), rung, &format!("signalled {word}: {why}"));
    }
    if let Some(trouble) = trouble {
        debug_log::line(state, Some(sid), rung, &trouble);
    }
    Ok(())
}

/// What was done to the session lately, oldest first.
fn tried(state: &State, sid: &SessionId) -> Vec<String> {
    let wedge = wedge_file::read(state, sid).unwrap_or_default();
    let kinds = [
        (&wedge.restarts, "restart"),
        (&wedge.wall_restarts, "restart on another account"),
        (&wedge.wakes, "wake"),
        (&wedge.transient_wakes, "wake after a transient failure"),
    ];
    let acts = kinds
        .iter()
        .flat_map(|(tally, what)| tally.acts().iter().map(|at| (*at, *what)));
    let mut acts: Vec<(i64, &str)> = acts.collect();
    acts.sort_unstable();
    let recent = acts.iter().rev().take(TRIED_MAX).rev();
    recent
        .map(|(at, act)| format!("{} {act}", time_text::rfc3339_ms(*at)))
        .collect()
}
