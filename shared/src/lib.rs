//! The library of all rungs.
//!
//! `pure` decides: it sees no clock, no file, no environment. `edge` holds the
//! effects, one a file. `hook` is the frame of every hook executable and `cli`
//! the frame of every tool. Rungs meet in files only, so nothing here lets one
//! executable call another.

pub mod cli;
pub mod edge;
pub mod hook;
pub mod pure;
#[cfg(all(feature = "spawn", feature = "zones"))]
pub mod restart;
