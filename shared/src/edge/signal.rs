//! Signals: how a rung hands a session up when it has done what it can.
//!
//! `signals/<sid>.<rung>.json` says what was tried and what a person should do.
//! A consumer writes a `.seen` beside it. The configured `notify` command, if
//! any, is started and not waited for.

use serde::{Deserialize, Serialize};

use crate::pure::session_id::SessionId;

use super::config::Config;
use super::state::{Durability, State};

/// The format that this version writes.
pub const FORMAT: u32 = 1;

/// What a rung hands up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signal {
    /// [`FORMAT`].
    pub format: u32,
    /// The session.
    pub sid: String,
    /// The hook that gave up: `walled-heal`, `wedge-heal`.
    pub rung: String,
    /// When (ms since 1970).
    pub at: i64,
    /// A word a program can branch on: `exhausted`, `parked`, `needs-login`,
    /// `needs-person`, `dialog-open`, `one-shot`.
    pub state: String,
    /// What happened, in one sentence.
    pub why: String,
    /// What was tried, oldest first.
    pub tried: Vec<String>,
    /// Ids that let a person find the evidence; never text of the conversation.
    pub evidence: Vec<String>,
    /// What a person should do.
    pub person: String,
}

/// Where they lie under the root.
pub const FOLDER: &str = "signals";

/// The file's name under the root.
pub fn name(sid: &SessionId, rung: &str) -> String {
    format!("{FOLDER}/{sid}.{rung}.json")
}

/// Whether a signal of the session that nobody has seen is among these names of
/// [`FOLDER`].
pub fn is_unread_among(names: &[String], sid: &SessionId) -> bool {
    let own = format!("{sid}.");
    let mut signals = names
        .iter()
        .filter(|name| name.starts_with(&own) && name.strip_suffix(".json").is_some());
    signals.any(|name| !names.contains(&format!("{name}.seen")))
}

/// Writes the signal and starts the `notify` command. A signal of the same state
/// that is already there is left alone: `Ok(false)`.
///
/// # Errors
/// The signal can't be written. A `notify` command that can't be started is the
/// second value of the pair, never an error.
pub fn raise(
    state: &State,
    config: &Config,
    sid: &SessionId,
    mut signal: Signal,
) -> anyhow::Result<(bool, Option<String>)> {
    let name = name(sid, &signal.rung);
    signal.format = FORMAT;
    sid.as_str().clone_into(&mut signal.sid);
    not_newer(state, &name)?;
    let standing = state
        .read(&name)?
        .and_then(|bytes| serde_json::from_slice::<Signal>(&bytes).ok());
    if standing
        .is_some_and(|standing| standing.state == signal.state && !state.exists(&format!("{name}.seen")))
    {
        return Ok((false, None));
    }
    state.remove(&format!("{name}.seen"))?;
    let bytes = serde_json::to_vec_pretty(&signal)?;
    state.replace(&name, &bytes, Durability::Process)?;
    Ok((true, notify(state, config, &name)))
}

/// Takes a signal back: what it said no longer holds.
///
/// # Errors
/// As the system says.
pub fn clear(state: &State, sid: &SessionId, rung: &str) -> anyhow::Result<()> {
    let name = name(sid, rung);
    not_newer(state, &name)?;
    state.remove(&name)?;
    state.remove(&format!("{name}.seen"))?;
    Ok(())
}

/// A signal of a newer format is another version's to write or take back.
fn not_newer(state: &State, name: &str) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let bytes = state.read(name)?.unwrap_or_default();
    match serde_json::from_slice::<Format>(&bytes) {
        Ok(Format { format }) if format > FORMAT => {
            anyhow::bail!("{name} has format {format}, this version writes {FORMAT}: upgrade Rungs")
        }
        _ => Ok(()),
    }
}

#[cfg(feature = "spawn")]
fn notify(state: &State, config: &Config, name: &str) -> Option<String> {
    let (program, words) = config.notify.as_deref()?.split_first()?;
    let mut command = super::spawn::command(program);
    command.args(words).arg(state.path().join(name));
    super::env::without_client_variables(&mut command);
    match super::spawn::start_detached(command) {
        Ok(_) => None,
        Err(why) => Some(format!("the notify command {program} can't be started: {why}")),
    }
}

#[cfg(not(feature = "spawn"))]
fn notify(_state: &State, _config: &Config, _name: &str) -> Option<String> {
    None
}
