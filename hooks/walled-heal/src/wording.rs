//! The words a waked session and a person read.

use shared::pure::diagnosis::{Diagnosis, Window};
use shared::pure::time_text;

/// The window in words.
pub(crate) fn window(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.window {
        Some(Window::FiveHour) => "5-hour limit",
        Some(Window::SevenDay) => "weekly limit",
        Some(Window::Overage) => "usage credit limit",
        Some(_) => "model's weekly limit",
        None => "usage limit",
    }
}

const GO_ON: &str =
    "Go on with the task exactly where it stopped; do not repeat work that is already complete.";

pub(crate) fn moved(cause: &str, from: &str, to: &str) -> String {
    format!("{cause}, so this session moved from the account '{from}' to '{to}' in place. {GO_ON}")
}

pub(crate) fn already_moved() -> String {
    format!("the account of this session was changed a moment ago, in place. {GO_ON}")
}

pub(crate) fn reset(window: &str) -> String {
    format!("the {window} has reset. {GO_ON}")
}

pub(crate) fn logged_in() -> String {
    format!("the account of this session has a working login again. {GO_ON}")
}

pub(crate) fn until(until_s: Option<i64>) -> String {
    until_s.map_or_else(|| "an account frees".to_owned(), time_text::rfc3339_s)
}
