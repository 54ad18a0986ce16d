//! The look just before an act.
//!
//! Between the failure and the act a person may have typed, cleared or closed
//! the session, switched the suite off, or another program may have continued it.
//! Whoever is about to wake or restart looks here first, and again after every
//! sleep. Anything that can't be seen is a reason to leave it.

use std::path::Path;

use crate::hook::Call;
use crate::pure::prompt_author;

use super::{client_session, env, lease_file};

/// What the client shows the person at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Nothing in the way.
    Clear,
    /// A dialog is open: a wake is queued and runs when it closes.
    Dialog,
}

/// Whether the session still stands where the failed turn left it; the error is
/// the reason to leave it alone.
///
/// # Errors
/// The reason, in words for the log.
pub fn still_ours(call: &Call) -> Result<Surface, String> {
    if call.is_off() {
        return Err("switched off".into());
    }
    if is_paused(call) {
        return Err("PAUSED by a person".into());
    }
    let pid = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    let pid: i32 = pid.ok_or("the client's pid is not known")?;
    let config = client_session::config_dir(call.payload.transcript_path.as_deref());
    let config = config.ok_or("the client's folder is not known")?;
    let session = client_session::read(&config, pid).map_err(|why| why.to_string())?;
    let session = session.ok_or("the client no longer lists this process")?;
    if session.session_id.as_deref() != Some(call.sid.as_str()) {
        return Err("the process went over to another session".into());
    }
    // The failed turn's own `busy` may still stand for 20 ms after the hook's
    // start (measured, 2.1.332); a later one is somebody else's turn.
    if session.status.as_deref() == Some("busy")
        && session.status_updated_at.is_none_or(|at| at > call.started)
    {
        return Err("another turn is under way".into());
    }
    let lease =
        lease_file::read(call.state, &call.sid).map_err(|why| format!("the lease can't be read: {why}"))?;
    if let Some(lease) = lease {
        if let Some((reason, at)) = lease.ended.filter(|(_, at)| *at >= call.started) {
            return Err(format!(
                "the session ended ({reason}) {} ms after the failure",
                at - call.started
            ));
        }
        let newer = lease.last_prompt.filter(|seen| {
            seen.at >= call.started && seen.prompt_id.as_deref() != call.payload.prompt_id.as_deref()
        });
        if newer.is_some() {
            return Err("another prompt came since".into());
        }
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

/// Whether a person paused the session, here or with the original tools' marker.
pub fn is_paused(call: &Call) -> bool {
    let marker = format!("loop/{}/PAUSED", call.sid.first8());
    if call.state.exists(&marker) {
        return true;
    }
    let jobs =
        client_session::config_dir(call.payload.transcript_path.as_deref()).map(|dir| dir.join("jobs"));
    jobs.is_some_and(|jobs| jobs.join(Path::new(&marker)).exists())
}

/// The text of a wake: stamped, so that nobody takes it for a person's prompt.
pub fn stamped(text: &str) -> String {
    let text = format!("ccswitch: {text}");
    debug_assert_eq!(prompt_author::author(&text), prompt_author::Author::Program);
    text
}
