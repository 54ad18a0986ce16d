//! Decisions: no clock, no files, no environment.

pub mod hook_payload;
pub mod session_id;
pub mod time_text;
