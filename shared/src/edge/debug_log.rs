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

/// Appends one line. A log that can't be written is nobody's problem but the
/// log's: the error is dropped on purpose.
pub fn line(state: &State, sid: Option<&SessionId>, hook: &str, text: &str) {
    let name = match sid {
        Some(sid) => format!("session/{sid}/debug.log"),
        None => "debug.log".to_owned(),
    };
    if state.stat(&name).is_ok_and(|(size, _)| size > BYTES_MAX) {
        drop(state.rename(&name, &format!("{name}.1")));
    }
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(2000)
        .collect();
    let line = format!("{} {hook} {one_line}\n", time_text::rfc3339_ms(clock::now_ms()));
    drop(state.append(&name, line.as_bytes()));
}
