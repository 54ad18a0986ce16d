//! The look just before an act.
//!
//! Between the failure and the act a person may have typed, cleared or closed
//! the session, switched the suite off, or another program may have continued it.
//! Whoever is about to wake or restart looks here first, and again after every
//! sleep. Anything that can't be seen is a reason to leave it.

use std::path::Path;

use crate::hook::Call;
use crate::pure::lease::{Lease, PromptSeen};
use crate::pure::prompt_author;
use crate::pure::session_id::SessionId;

use super::state::State;
use super::{client_session, clock, env, lease_file, proc};

/// What the client shows the person at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Nothing in the way.
    Clear,
    /// A dialog is open: a wake is queued and runs when it closes.
    Dialog,
}

/// What is looked at: a failed turn of a session in a process.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The state root.
    pub state: &'a State,
    /// The session.
    pub sid: &'a SessionId,
    /// The failed turn, where the client named it.
    pub prompt_id: Option<&'a str>,
    /// The client's folder.
    pub config: &'a Path,
    /// The client's process.
    pub pid: i32,
    /// When the turn had failed (ms since 1970): what is later is news.
    pub since: i64,
}

/// Whether the session still stands where the failed turn left it; the error is
/// the reason to leave it alone.
///
/// # Errors
/// The reason, in words for the log.
pub fn still_ours(call: &Call) -> Result<Surface, String> {
    let pid = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    let config = client_session::config_dir(call.payload.transcript_path.as_deref());
    look(&Subject {
        state: call.state,
        sid: &call.sid,
        prompt_id: call.payload.prompt_id.as_deref(),
        config: &config.ok_or("the client's folder is not known")?,
        pid: pid.ok_or("the client's pid is not known")?,
        since: call.started,
    })
}

/// As [`still_ours`], for a program that no hook call stands behind.
///
/// # Errors
/// The reason, in words for the log.
pub fn look(subject: &Subject) -> Result<Surface, String> {
    if subject.state.exists("off") {
        return Err("switched off".into());
    }
    if is_stopped(subject.state, subject.sid, Some(subject.config)) {
        return Err("PAUSED or held by a person".into());
    }
    if proc::is_own_program_gone() {
        return Err("the suite was uninstalled".into());
    }
    let session = client_session::read(subject.config, subject.pid).map_err(|why| why.to_string())?;
    let session = session.ok_or("the client no longer lists this process")?;
    if session.session_id.as_deref() != Some(subject.sid.as_str()) {
        return Err("the process went over to another session".into());
    }
    // The failed turn's own `busy` may still stand for 90 ms after the hook's
    // start. A later one is another turn, or the client's own dialog on its way
    // (both measured, 2.1.332): only the turn shows in the lease, a moment later.
    let is_busy_anew = session.status.as_deref() == Some("busy")
        && session.status_updated_at.is_none_or(|at| at > subject.since);
    let mut looks_left = if is_busy_anew { 6 } else { 0 };
    loop {
        let lease = lease_file::read(subject.state, subject.sid)
            .map_err(|why| format!("the lease can't be read: {why}"))?;
        match lease {
            Some(lease) => nothing_since(subject, lease)?,
            None if is_busy_anew => return Err("another turn is under way".into()),
            None => {}
        }
        if looks_left == 0 {
            break;
        }
        looks_left -= 1;
        clock::sleep_ms(50);
    }
    match (session.status.as_deref(), session.waiting_for.as_deref()) {
        (Some("waiting"), Some("dialog open")) => Ok(Surface::Dialog),
        (Some("waiting"), what) => Err(format!(
            "it waits on a person ({})",
            what.unwrap_or("no word for what")
        )),
        _ => Ok(Surface::Clear),
    }
}

/// Whether the lease shows neither an end nor another prompt since.
fn nothing_since(subject: &Subject, lease: Lease) -> Result<(), String> {
    if let Some((reason, at)) = lease.ended.filter(|(_, at)| *at >= subject.since) {
        let after = at - subject.since;
        return Err(format!(
            "the session ended ({reason}) {after} ms after the failure"
        ));
    }
    let is_news =
        |seen: &PromptSeen| seen.at >= subject.since && seen.prompt_id.as_deref() != subject.prompt_id;
    match lease.last_prompt.filter(is_news) {
        Some(_) => Err("another prompt came since".into()),
        None => Ok(()),
    }
}

/// Whether a person paused the session, here or with the original tools' marker,
/// or holds it.
pub fn is_paused(call: &Call) -> bool {
    let config = client_session::config_dir(call.payload.transcript_path.as_deref());
    is_stopped(call.state, &call.sid, config.as_deref())
}

/// As [`is_paused`], for a program that no hook call stands behind.
pub fn is_stopped(state: &State, sid: &SessionId, config: Option<&Path>) -> bool {
    let marker = format!("loop/{}/PAUSED", sid.first8());
    state.exists(&marker)
        || state.exists(&format!("session/{sid}/held"))
        || config.is_some_and(|config| config.join("jobs").join(&marker).exists())
}

/// The text of a wake: stamped, so that nobody takes it for a person's prompt.
pub fn stamped(text: &str) -> String {
    stamped_by("ccswitch", text)
}

/// As [`stamped`], with another of the suite's names.
pub fn stamped_by(name: &str, text: &str) -> String {
    let text = format!("{name}: {text}");
    debug_assert_eq!(prompt_author::author(&text), prompt_author::Author::Program);
    text
}
