//! Decisions: no clock, no files, no environment.

pub mod backoff;
pub mod client_argv;
pub mod composer;
#[cfg(feature = "zones")]
pub mod diagnosis;
#[cfg(feature = "zones")]
mod failure;
pub mod goal;
pub mod hook_payload;
pub mod json_span;
pub mod lease;
mod lenient;
#[cfg(feature = "zones")]
pub mod observed;
pub mod outage;
pub mod owner;
pub mod pool;
pub mod prompt_author;
pub mod proof;
#[cfg(feature = "zones")]
pub mod reset_time;
pub mod session_id;
pub mod settings_edit;
pub mod tally;
pub mod time_text;
pub mod transcript;
