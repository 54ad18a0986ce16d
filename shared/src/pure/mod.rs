//! Decisions: no clock, no files, no environment.

pub mod hook_payload;
pub mod lease;
pub mod pool;
pub mod prompt_author;
pub mod session_id;
pub mod time_text;
