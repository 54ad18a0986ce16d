//! What the code must keep to and no compiler checks: who may depend on whom,
//! where effects live, how long things get, what is documented, and what must
//! never be written down here.
//!
//! The readers of source are lenient, as the code is formatted: a block ends at
//! its closing brace in the column of its first line. An exception stands in a
//! list here, with its reason.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod documents;
mod packages;
mod sources;
mod tree;
mod words;

/// Fails with every finding, one a line.
#[track_caller]
fn assert_none(findings: &[String], rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
