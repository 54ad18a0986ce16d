//! The restart of a session's process as the same session.
//!
//! One library for both rungs that restart: rung 1 where the process can't go on,
//! rung 2 where the client's own dialog stands before a wake. Each has its own
//! budget and name; neither calls the other.

pub mod hand_up;
pub mod helper;
pub mod intent;
mod order;
mod pane_host;
pub mod terminal;

use std::ffi::OsStr;

pub use order::Order;

use crate::edge::state::State;
use crate::hook::Arguments;

/// The verbs of a hook that restarts: `--restart INTENT` (the helper) and
/// `--host INTENT` (in the pane). The value is the exit code; `None` where the
/// words are neither.
pub fn verb(arguments: &Arguments) -> Option<i32> {
    let [verb, intent] = arguments.rest.as_slice() else {
        return None;
    };
    let run = match verb.to_str() {
        Some("--restart") => helper::run as fn(&State, &str) -> i32,
        Some("--host") => pane_host::run,
        _ => return None,
    };
    let root = arguments.root.clone().or_else(State::default_path);
    let state = root.and_then(|root| State::open_root(&root).ok());
    Some(match (state, OsStr::to_str(intent)) {
        (Some(state), Some(intent)) => run(&state, intent),
        _ => 1,
    })
}
