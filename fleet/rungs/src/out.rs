//! Lines for people. A reader that went away (`rungs log | head`) is no error.

use std::io::Write;

/// Prints one line.
pub(crate) fn line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").ok();
}

/// Prints one line to standard error.
pub(crate) fn complain(text: &str) {
    writeln!(std::io::stderr().lock(), "{}", one_line(text)).ok();
}

/// Prints a JSON value, indented.
pub(crate) fn json(value: &serde_json::Value) {
    line(&format!("{value:#}"));
}

/// Foreign text for a terminal: no control character, no more than `max`
/// characters (a session's name was once a blob of 184 KB).
pub(crate) fn bounded(text: &str, max: usize) -> String {
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

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
