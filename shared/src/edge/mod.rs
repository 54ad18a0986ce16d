//! Effects, one a file.

pub mod client_lock;
pub mod client_session;
pub mod clock;
pub mod config;
pub mod deadline;
pub mod debug_log;
pub mod env;
pub mod episode;
pub mod json_file;
pub mod lease_file;
pub mod lock;
#[cfg(feature = "zones")]
pub mod outage;
pub mod pool_file;
pub mod proc;
pub mod recheck;
pub mod shard;
pub mod signal;
#[cfg(feature = "spawn")]
pub mod spawn;
pub mod state;
pub mod store;
pub mod transcript_file;
#[cfg(feature = "zones")]
pub mod transient;
pub mod wedge_file;
