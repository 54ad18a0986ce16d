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

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
