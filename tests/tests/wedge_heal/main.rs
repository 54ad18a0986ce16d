//! wedge-heal as built, against a stand-in for the client.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a broken expectation is the test's failure"
)]

mod hands_off;
mod restart;
mod stage;
mod wait;
