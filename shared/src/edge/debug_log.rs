//! The per-session debug log: what each hook saw, decided and did.
//!
//! One line a decision, one write a line, so that parallel hooks never mix.
//! Bounded: at [`BYTES_MAX`] the file is renamed to `debug.log.1` and begun anew.
//! Lines hold ids, verdicts and our own words; no prompt, no answer, no secret.

use crate::pure::session_id::SessionId;
use crate::pure::time_text;

use super::clock;
use super::state::State;

/// Size at which the log is rotated, in bytes.
pub const BYTES_MAX: u64 = 256 << 10;

/// The log of what belongs to no session, or can't be told in its own.
const ROOTS_OWN: &str = "debug.log";

/// Appends one line. A log that can't be written is nobody's problem but the
/// log's: the error is dropped on purpose.
pub fn line(state: &State, sid: Option<&SessionId>, hook: &str, text: &str) {
    let name = match sid {
        Some(sid) => format!("session/{sid}/debug.log"),
        None => ROOTS_OWN.to_owned(),
    };
    if state.stat(&name).is_ok_and(|(size, _)| size > BYTES_MAX) {
        drop(state.rename(&name, &format!("{name}.1")));
    }
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(2000)
        .collect();
    let at = time_text::rfc3339_ms(clock::now_ms());
    let written = state.append(&name, format!("{at} {hook} {one_line}\n").as_bytes());
    // The session's folder may be what is wrong.
    if let (Err(why), Some(sid)) = (written, sid) {
        let line = format!("{at} {hook} {sid} {one_line} ({name}: {why})\n");
        drop(state.append(ROOTS_OWN, line.as_bytes()));
    }
}
