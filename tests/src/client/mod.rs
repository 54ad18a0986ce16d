//! The real client: found, given an empty home, and driven.
//!
//! A test that needs it begins with
//! `let Some(client) = Client::find() else { return };`
//! and is counted as skipped, loudly, where the client is not installed.

mod background;
mod home;
mod locate;
mod print;
mod processes;
mod recorder;
mod registry;
mod stream_json;
mod tmux;
mod transcript;
mod wait;

pub use background::Background;
pub use home::Home;
pub use locate::Client;
pub use print::Output;
pub use processes::{alive, end_process};
pub use recorder::{HookRecord, Recorder};
pub use registry::SessionFile;
pub use stream_json::StreamJson;
pub use tmux::{Pane, Tmux};
pub use transcript::Transcript;
pub use wait::{PATIENCE, wait_for, wait_until};

/// Lets every tool run without asking.
pub const NO_QUESTIONS: &str = "--dangerously-skip-permissions";
