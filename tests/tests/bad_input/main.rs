//! Bad input, for all four hooks as built: whatever comes, the turn goes on.
//!
//! The tables in `payloads`, `files` and `surroundings` have inputs as rows and
//! hooks as columns. For each cell the stage also checks what holds everywhere:
//! an end within the bound, no panic, nothing outside the state root touched, no
//! good state lost.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::format_collect,
    missing_docs,
    reason = "a test fails by panicking, and a table is as long as it has rows"
)]

mod files;
mod parallel;
mod payloads;
mod stage;
mod surroundings;
mod table;
