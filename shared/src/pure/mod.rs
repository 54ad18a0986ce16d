//! Decisions: no clock, no files, no environment.

pub mod hook_payload;
pub mod lease;
mod lenient;
pub mod prompt_author;
#[cfg(feature = "zones")]
pub mod reset_time;
pub mod session_id;
pub mod time_text;
pub mod transcript;
