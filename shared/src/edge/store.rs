//! The accounts' credential stores, looked at without touching a token.
//!
//! `accounts/<name>` is a folder with a `.credentials.json` of its own, or a link
//! to the client's own folder (the login that was there already). Tokens are read
//! past, never kept, printed or written.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::Deserialize;

use crate::pure::pool::{self, Login};

use super::state::State;

/// The client's file of logins in a store.
pub const CREDENTIALS: &str = ".credentials.json";

/// Largest credentials file that is looked at, in bytes. (It holds the logins of
/// MCP servers too.)
const CREDENTIALS_BYTES_MAX: u64 = 4 << 20;

/// Where an account's store is.
pub fn path(state: &State, account: &str) -> PathBuf {
    state.path().join("accounts").join(account)
}

/// Every account, with what a look at its store gave.
///
/// # Errors
/// The folder of accounts can't be read; a missing one is empty.
pub fn accounts(state: &State) -> io::Result<BTreeMap<String, Login>> {
    let names = state.list("accounts")?;
    let names = names.into_iter().filter(|name| pool::is_name(name));
    Ok(names
        .map(|name| (login(&path(state, &name)), name))
        .map(|(login, name)| (name, login))
        .collect())
}

/// What a look at a store gives.
pub fn login(store: &Path) -> Login {
    match look(store) {
        Ok(login) => login,
        Err(why) if why.kind() == io::ErrorKind::NotFound => Login::Absent,
        Err(why) => Login::Unreadable(why.to_string()),
    }
}

fn look(store: &Path) -> io::Result<Login> {
    #[derive(Deserialize)]
    struct File {
        #[serde(rename = "claudeAiOauth")]
        oauth: Option<Oauth>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Oauth {
        access_token: Option<Presence>,
    }

    // A fifo in its place must not block.
    let mut options = fs_err::OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(store.join(CREDENTIALS))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > CREDENTIALS_BYTES_MAX {
        return Err(io::Error::other(
            "its credentials file is not a regular file of a sensible size",
        ));
    }
    let parsed: Result<File, _> = serde_json::from_reader(io::BufReader::new(file));
    // The parser's message could quote what it read: only its place is kept.
    let parsed = parsed.map_err(|why| {
        io::Error::other(format!(
            "its credentials file is not understood (line {} column {})",
            why.line(),
            why.column()
        ))
    })?;
    let is_present = parsed
        .oauth
        .and_then(|oauth| oauth.access_token)
        .is_some_and(|token| token.0);
    let written_at = metadata
        .modified()?
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    Ok(if is_present {
        Login::Present {
            written_at: i64::try_from(written_at).unwrap_or(i64::MAX),
        }
    } else {
        Login::Absent
    })
}

/// Whether a string is there and not empty; the string itself is not kept.
struct Presence(bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Presence;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, text: &str) -> Result<Presence, E> {
                Ok(Presence(!text.is_empty()))
            }
        }
        from.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_of_every_state() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path();
        let put = |text: &str| fs_err::write(store.join(CREDENTIALS), text).unwrap();
        assert_eq!(login(store), Login::Absent);
        put(r#"{"claudeAiOauth":{"accessToken":"SECRETSECRET","refreshToken":"x"},"mcpOAuth":{}}"#);
        assert!(matches!(login(store), Login::Present { written_at } if written_at > 1_700_000_000_000));
        put(r#"{"claudeAiOauth":{"accessToken":""}}"#);
        assert_eq!(login(store), Login::Absent);
        put(r#"{"mcpOAuth":{}}"#);
        assert_eq!(login(store), Login::Absent);
        put(r#"{"claudeAiOauth":{"accessToken":"SECRETSECRET"#);
        let Login::Unreadable(why) = login(store) else {
            panic!("half a file is not a login")
        };
        assert!(!why.contains("SECRET"), "{why}");
        put(r#"{"claudeAiOauth":{"accessToken":5}}"#);
        assert!(matches!(login(store), Login::Unreadable(_)));
    }
}
