//! Fakes and drivers that the test targets share.
//!
//! `mock_api` and `oauth_endpoint` stand in for the service; `client` starts the
//! real Claude Code client in throw-away homes and drives it as a person or a
//! program would. Nothing here reaches beyond loopback.

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

pub mod client;
pub mod executables;
pub mod files;
pub mod login;
pub mod mock_api;
pub mod oauth_endpoint;
pub mod suite;
pub mod walled_stage;
