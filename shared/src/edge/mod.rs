//! Effects, one a file.

pub mod clock;
pub mod deadline;
pub mod debug_log;
pub mod env;
pub mod lock;
pub mod proc;
pub mod state;
