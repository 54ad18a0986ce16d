//! The frame of every tool that is not a hook: what it prints, how it ends.
//!
//! Exit code 0: done. 1: refused or failed, with one line on standard error that
//! names the thing and the way out. 2: the call's words are wrong.

use std::io::Write;
use std::process::ExitCode;

/// Prints one line. A reader that went away (`rungs log | head`) is no error.
pub fn line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").ok();
}

/// Prints one line to standard error.
pub fn complain(text: &str) {
    writeln!(std::io::stderr().lock(), "{}", text.replace(['\n', '\r'], " ")).ok();
}

/// Prints a JSON value, indented.
pub fn json(value: &serde_json::Value) {
    line(&format!("{value:#}"));
}

/// Foreign text for a terminal: no control character, no more than `max`
/// characters (a session's name was once a blob of 184 KB).
pub fn bounded(text: &str, max: usize) -> String {
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(max)
        .collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

/// Ends a tool: its own code, or 1 with the error and its causes in one line.
pub fn finish(tool: &str, done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        complain(&format!("{tool}: {error:#}"));
        ExitCode::FAILURE
    })
}
