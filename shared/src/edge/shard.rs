//! Shards: the links that say which account a session's login comes from.
//!
//! `shards/<shard>` is a link to `../accounts/<account>`. Replacing it moves every
//! session of the shard at its next request: same process, same conversation, no
//! token copied (measured, 2.1.332).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, AtFlags};
use serde::{Deserialize, Serialize};

use crate::pure::pool;

use super::state::State;
use super::{client_lock, clock, lock, store};

/// The log of flips, one JSON line each.
pub const FLIPS: &str = "flips.jsonl";

/// The lock of everything that is rung 2's.
pub const POOL_LOCK: &str = "pool.lock";

/// One line of the log of flips.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flip {
    /// 1.
    pub format: u32,
    /// When (ms since 1970).
    pub at: i64,
    /// The shard.
    pub shard: String,
    /// Account left.
    pub from: String,
    /// Account gone to.
    pub to: String,
    /// Why: `wall` or `dead-login`.
    pub cause: String,
    /// The session whose hook flipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<String>,
}

/// What a try to flip gave.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The shard now points to the wanted account.
    Flipped,
    /// The shard no longer points to the account that was to be left: another
    /// mover won, and the session only needs a wake.
    Lost,
    /// The client kept a lock the whole time (a refresh that hangs).
    Busy,
}

/// The shard that a login's folder is, where it is one of ours: in the spelling the
/// client was given, or in another of the same place.
pub fn name_of(state: &State, store: &Path) -> Option<String> {
    let parent = store.parent()?;
    let shards = state.path().join("shards");
    let is_same = || {
        let resolved = fs_err::canonicalize(parent).ok();
        parent.file_name() == shards.file_name()
            && resolved.is_some()
            && resolved == fs_err::canonicalize(&shards).ok()
    };
    let is_ours = parent == shards || is_same();
    is_ours.then(|| store.file_name()?.to_str().map(str::to_owned))?
}

/// The account that a shard points to; `None` where there is no such shard.
///
/// # Errors
/// It is not a link, or points to something that is not one of our accounts.
pub fn account(state: &State, shard: &str) -> io::Result<Option<String>> {
    let name = format!("shards/{shard}");
    let target = match fs::readlinkat(state.dir(), &name, Vec::new()) {
        Ok(target) => PathBuf::from(std::ffi::OsString::from(target.to_string_lossy().into_owned())),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => {
            return Err(io::Error::new(
                io::Error::from(error).kind(),
                format!("the shard {shard} can't be read: {error}"),
            ));
        }
    };
    let account = target
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| pool::is_name(name));
    let parent = target
        .parent()
        .map(|parent| state.path().join("shards").join(parent));
    let ours = parent.and_then(|parent| fs_err::canonicalize(parent).ok())
        == fs_err::canonicalize(state.path().join("accounts")).ok();
    match account {
        Some(account) if ours => Ok(Some(account.to_owned())),
        _ => Err(io::Error::other(format!(
            "the shard {shard} points outside the accounts; `ccswitch adopt` sets it up anew"
        ))),
    }
}

/// Points a shard to an account, whole: the old link or the new, never none.
///
/// # Errors
/// As the system says.
pub fn point(state: &State, shard: &str, account: &str) -> io::Result<()> {
    state.make_dirs("shards")?;
    let name = format!("shards/{shard}");
    let beside = format!("{name}.{}.tmp", rustix::process::getpid().as_raw_nonzero());
    fs::unlinkat(state.dir(), &beside, AtFlags::empty()).ok();
    fs::symlinkat(format!("../accounts/{account}"), state.dir(), &beside)?;
    if let Err(error) = fs::renameat(state.dir(), &beside, state.dir(), &name) {
        fs::unlinkat(state.dir(), &beside, AtFlags::empty()).ok();
        return Err(error.into());
    }
    Ok(())
}

/// Moves a shard from one account to another, under the client's own locks of
/// the store that is left, waiting for them at most `wait_ms`.
///
/// # Errors
/// As the system says; the shard is then where it was.
pub fn flip(state: &State, flip: &Flip, wait_ms: u64) -> io::Result<Outcome> {
    let left = store::path(state, &flip.from);
    let deadline = clock::now_ms() + i64::try_from(wait_ms).unwrap_or(i64::MAX);
    loop {
        if account(state, &flip.shard)?.as_deref() != Some(flip.from.as_str()) {
            return Ok(Outcome::Lost);
        }
        // A store that is gone holds no login that could be lost.
        let resolved = fs_err::canonicalize(&left);
        let held = match &resolved {
            Ok(resolved) => client_lock::try_take(resolved)?.map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
            Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        };
        if let Some(held) = held
            && let Some(pool) = lock::take(state, POOL_LOCK, 300)?
        {
            let outcome = flip_now(state, flip);
            drop((pool, held));
            return outcome;
        }
        if clock::now_ms() >= deadline {
            return Ok(Outcome::Busy);
        }
        clock::sleep_ms(10);
    }
}

fn flip_now(state: &State, flip: &Flip) -> io::Result<Outcome> {
    if account(state, &flip.shard)?.as_deref() != Some(flip.from.as_str()) {
        return Ok(Outcome::Lost);
    }
    touch_if_same(state, &flip.from, &flip.to);
    // The log goes first: whoever sees the new account must find the flip too, or
    // a late refusal of the old account would be charged to the new one. A log
    // that can't be written must not keep a session walled.
    let flip = Flip {
        at: clock::now_ms(),
        ..flip.clone()
    };
    let mut line = serde_json::to_vec(&flip)?;
    line.push(b'\n');
    state.append(FLIPS, &line).ok();
    point(state, &flip.shard, &flip.to)?;
    Ok(Outcome::Flipped)
}

/// The client notices another store by the file's time alone, so two files of
/// the same millisecond would look like one (measured, 2.1.332).
fn touch_if_same(state: &State, from: &str, to: &str) {
    let file = |account: &str| fs_err::File::open(store::path(state, account).join(store::CREDENTIALS));
    let time = |file: &fs_err::File| file.metadata().and_then(|metadata| metadata.modified());
    if let (Ok(from), Ok(to)) = (file(from), file(to))
        && let (Ok(from), Ok(to_time)) = (time(&from), time(&to))
    {
        let gap = from
            .duration_since(to_time)
            .unwrap_or_else(|later| later.duration());
        if gap < Duration::from_millis(2) {
            to.file().set_modified(to_time + Duration::from_millis(5)).ok();
        }
    }
}

/// The newest flip of a shard, from the end of the log.
pub fn last_flip(state: &State, shard: &str) -> Option<Flip> {
    let (bytes, _) = state.read_tail(FLIPS, 64 << 10).ok()??;
    let lines = bytes.rsplit(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice::<Flip>(line).ok())
        .find(|flip| flip.shard == shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_known_in_every_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        state.make_dirs("shards").unwrap();
        state.make_dirs("accounts").unwrap();
        point(&state, "default", "a").unwrap();
        let other = dir.path().join("other");
        fs_err::os::unix::fs::symlink(state.path(), &other).unwrap();
        for (store, expected) in [
            (state.path().join("shards/default"), Some("default")),
            (other.join("shards/default"), Some("default")),
            (state.path().join("shards/../shards/own"), Some("own")),
            (dir.path().join("shards/default"), None),
            (state.path().join("accounts/a"), None),
            (PathBuf::from("default"), None),
        ] {
            assert_eq!(
                name_of(&state, &store).as_deref(),
                expected,
                "{}",
                store.display()
            );
        }
        assert_eq!(account(&state, "default").unwrap().as_deref(), Some("a"));
        assert_eq!(account(&state, "own").unwrap(), None);
    }
}
