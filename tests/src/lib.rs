//! Fakes and drivers that the test targets share.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "this library runs in tests only: a broken expectation is the test's failure"
)]

pub mod executables;
