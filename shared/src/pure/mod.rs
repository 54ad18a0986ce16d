//! Decisions: no clock, no files, no environment.
