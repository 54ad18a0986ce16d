//! Changing verbs are a person's (rule L6): no session touches a credential.

use anyhow::bail;
use shared::edge::env;
use shared::pure::pool;

/// Refuses inside a session, with the command for the person.
pub(crate) fn only(command: &str) -> anyhow::Result<()> {
    if env::is_set(env::CLAUDE_CODE_SESSION_ID) || env::is_set(env::CLAUDECODE) {
        bail!(
            "accounts are changed by a person, not from inside a session; in a terminal of your own run: {command}"
        );
    }
    Ok(())
}

/// Refuses a name that can't be an account's.
pub(crate) fn is_name(name: &str) -> anyhow::Result<()> {
    if !pool::is_name(name) {
        bail!(
            "{:?} can't be an account's name: use letters, digits, and - _ . @ + (not first: - .; not last: .lock)",
            shared::cli::bounded(name, 40)
        );
    }
    Ok(())
}
