//! Every environment variable that Rungs reads, and nowhere else.
//!
//! The list of inputs is this file: `clippy.toml` forbids `std::env::var`
//! elsewhere. Variables that may hold a secret are only asked whether they are
//! set ([`is_set`]); their value is never read.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one reader of the environment"
)]

use std::ffi::OsString;
use std::path::PathBuf;

/// The person's home folder.
pub const HOME: &str = "HOME";
/// Root of the state, in place of `~/.rungs`.
pub const RUNGS_HOME: &str = "RUNGS_HOME";
/// Where programs are looked up.
pub const PATH: &str = "PATH";
/// The client's folder, in place of `~/.claude`.
pub const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The folder of the login alone (undocumented; measured, 2.1.332).
pub const CLAUDE_SECURESTORAGE_CONFIG_DIR: &str = "CLAUDE_SECURESTORAGE_CONFIG_DIR";
/// Pid of the client that started a hook (measured, 2.1.332).
pub const CLAUDE_PID: &str = "CLAUDE_PID";
/// Session of the client that started this process (measured, 2.1.332).
pub const CLAUDE_CODE_SESSION_ID: &str = "CLAUDE_CODE_SESSION_ID";
/// Set for every process below a client (measured, 2.1.332).
pub const CLAUDECODE: &str = "CLAUDECODE";
/// `cli` in a terminal, `sdk-cli` with `-p` (measured, 2.1.332).
pub const CLAUDE_CODE_ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";
/// Set for a background session's hooks (measured, 2.1.332).
pub const CLAUDE_JOB_DIR: &str = "CLAUDE_JOB_DIR";
/// Makes the client wait out a limit inside the request: no hook runs then.
pub const CLAUDE_CODE_RETRY_WATCHDOG: &str = "CLAUDE_CODE_RETRY_WATCHDOG";
/// An API key: it outranks every login.
pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";
/// A bearer token for a gateway: it outranks every login.
pub const ANTHROPIC_AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
/// A long-lived token: it outranks the stores (measured, 2.1.332).
pub const CLAUDE_CODE_OAUTH_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";
/// tmux's socket, server pid and session, of the pane we run in.
pub const TMUX: &str = "TMUX";
/// tmux's pane id, as `%3`.
pub const TMUX_PANE: &str = "TMUX_PANE";
/// The machine's zone, where set.
pub const TZ: &str = "TZ";

/// The variable's value; empty counts as not set.
pub fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The variable's value where it is UTF-8; anything else counts as not set.
pub fn text(name: &str) -> Option<String> {
    value(name)?.into_string().ok()
}

/// The variable's value as a path; empty counts as not set.
pub fn path(name: &str) -> Option<PathBuf> {
    value(name).map(PathBuf::from)
}

/// Whether the variable is set and not empty, without reading its value.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The client's folder: `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
pub fn claude_dir() -> Option<PathBuf> {
    path(CLAUDE_CONFIG_DIR).or_else(|| Some(path(HOME)?.join(".claude")))
}

/// Takes out of a child's environment what the client adds for its own children,
/// secrets included, so that nothing of it reaches programs that we start.
#[cfg(feature = "spawn")]
pub fn without_client_variables(command: &mut std::process::Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_none_or(is_client_variable) {
            command.env_remove(name);
        }
    }
}

/// Whether the client sets this variable for its own children, or it is a secret
/// (names measured, 2.1.332).
pub fn is_client_variable(name: &str) -> bool {
    matches!(
        name,
        "AI_AGENT"
            | CLAUDECODE
            | CLAUDE_PID
            | "CLAUDE_EFFORT"
            | "CLAUDE_ENV_FILE"
            | "CLAUDE_PROJECT_DIR"
            | CLAUDE_JOB_DIR
    ) || matches!(name, ANTHROPIC_API_KEY | ANTHROPIC_AUTH_TOKEN)
        || name.starts_with("CLAUDE_CODE_")
        || name.starts_with("CLAUDE_PLUGIN_")
}
