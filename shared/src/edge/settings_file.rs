//! The client's settings.json on disk, and the record of what we changed in it.
//!
//! The client reads the file live, so it is replaced whole, never written in
//! place; mode and symbolic link stay. What was done is written to
//! `installed.json` in the state root before the file itself, so that a run
//! that dies in between can still be taken back. `rungs install` puts hooks,
//! `ccswitch adopt` an `env` entry; both come through here, one at a time.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pure::settings_edit::{self, Before, Ours};

use super::lock;
use super::state::{Durability, State};

/// The most that is read of a settings file, in bytes.
pub const SETTINGS_BYTES_MAX: u64 = 64 << 20;

/// The record of all changes, under the state root.
pub const RECORD: &str = "installed.json";

/// The format of [`RECORD`] that this code writes.
const RECORD_FORMAT: u64 = 1;

/// Our own lock around record and settings, in ms; tools can wait.
const LOCK_WAIT_MS: u64 = 5000;

/// What was changed in one settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Whether the file was there before the first change.
    pub existed: bool,
    /// Whether we made its folder.
    #[serde(default)]
    pub made_dir: bool,
    /// The content before the first change: a file under the state root.
    #[serde(default)]
    pub backup: Option<String>,
    /// Whether the hooks came as a plugin: then the client itself has written
    /// the file anew.
    #[serde(default)]
    pub plugin: bool,
    /// The `env` entries that we set.
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// What the edited bytes cannot tell.
    #[serde(default)]
    pub before: Before,
}

/// What a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was as wanted; no byte was written.
    Unchanged,
    /// The file was written.
    Written,
    /// The file had not been there before us and is gone again.
    Removed,
}

/// What [`take_back`] found and did.
#[derive(Debug, Clone)]
pub struct TakenBack {
    /// What became of the file.
    pub outcome: Outcome,
    /// How many hook entries of ours were in it.
    pub hooks: usize,
    /// The `env` entries of ours that were in it.
    pub env: Vec<String>,
    /// Whether the file is now what it was before the first change; `None`
    /// where no record tells.
    pub identical: Option<bool>,
}

/// Whether a change is made or only worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Made.
    Write,
    /// Worked out and checked; nothing is written.
    DryRun,
}

/// Puts exactly the hooks of `hooks` (the text of a `{"hooks": {...}}` object)
/// into the file, in place of any older ones of ours.
pub fn put_hooks(state: &State, path: &Path, hooks: &str, mode: Mode) -> Result<Outcome> {
    edit(state, path, mode, |current, changed| {
        if settings_edit::holds(current, hooks)? {
            return Ok(Some(current.to_vec()));
        }
        let ours = Ours {
            hooks: true,
            env: &[],
        };
        let base = settings_edit::take(current, ours, &changed.before)?;
        let base = base.unwrap_or_else(|| blank_of(changed));
        let edited = settings_edit::put(&base, hooks)?;
        changed.before.empty.retain(|path, _| !path.starts_with("/hooks"));
        remember(changed, edited.before);
        Ok(Some(edited.bytes))
    })
}

/// Takes the hooks out and leaves our `env` entries: the plugin brings the hooks.
/// The content is kept now, before the client's own `plugin` verbs write the
/// file anew.
pub fn leave_to_plugin(state: &State, path: &Path, mode: Mode) -> Result<Outcome> {
    edit(state, path, mode, |current, changed| {
        let ours = Ours {
            hooks: true,
            env: &[],
        };
        changed.plugin = true;
        let back = settings_edit::take(current, ours, &changed.before)?;
        Ok(back.or_else(|| changed.existed.then(|| blank_of(changed))))
    })
}

/// Sets one `env` entry; refused where the user has set it to something else.
/// An entry of ours under that key is replaced.
pub fn set_env(state: &State, path: &Path, key: &str, value: &str, mode: Mode) -> Result<Outcome> {
    edit(state, path, mode, |current, changed| {
        if settings_edit::env_value(current, key)?.as_deref() == Some(value) {
            return Ok(Some(current.to_vec()));
        }
        let older = entries_of(changed, key);
        let base = without_env(current, &older, changed)?.unwrap_or_else(|| blank_of(changed));
        changed.env.retain(|(name, _)| name != key);
        let entry = (key.to_owned(), value.to_owned());
        let additions = settings_edit::additions(None, std::slice::from_ref(&entry))?;
        let edited = settings_edit::put(&base, &additions)?;
        changed.env.push(entry);
        remember(changed, edited.before);
        Ok(Some(edited.bytes))
    })
}

/// Takes one `env` entry of ours out again; the user's own value stays.
pub fn unset_env(state: &State, path: &Path, key: &str, mode: Mode) -> Result<Outcome> {
    edit(state, path, mode, |current, changed| {
        let ours = entries_of(changed, key);
        changed.env.retain(|(name, _)| name != key);
        without_env(current, &ours, changed)
    })
}

/// Takes everything of ours out: the hooks, the recorded `env` entries, and
/// one under `shard_key` whose value lies inside `root`.
pub fn take_back(state: &State, path: &Path, shard_key: &str, root: &Path, mode: Mode) -> Result<TakenBack> {
    let mut hooks = 0;
    let mut env = Vec::new();
    let mut backup = None;
    let mut result = None;
    let outcome = edit(state, path, mode, |current, changed| {
        hooks = settings_edit::our_hooks(current)?.len();
        if let Some(value) = settings_edit::env_value(current, shard_key)?
            && Path::new(&value).starts_with(root)
        {
            changed.env.push((shard_key.to_owned(), value));
        }
        for (key, value) in &changed.env {
            if !env.contains(key) && settings_edit::env_value(current, key)?.as_ref() == Some(value) {
                env.push(key.clone());
            }
        }
        let ours = Ours {
            hooks: true,
            env: &changed.env,
        };
        let back = settings_edit::take(current, ours, &changed.before)?;
        let mut back = back.or_else(|| changed.existed.then(|| blank_of(changed)));
        backup.clone_from(&changed.backup);
        if changed.plugin {
            let original = backup.as_deref().map(|name| state.read(name)).transpose()?;
            let original = original.flatten();
            if original.is_some() == changed.existed
                && settings_edit::is_rewrite_of(back.as_deref(), original.as_deref())
            {
                back = original;
            }
        }
        changed.env.clear();
        result.clone_from(&back);
        Ok(back)
    })?;
    let identical = match backup {
        Some(name) => Some(state.read(&name)? == result),
        None => None,
    };
    if mode == Mode::Write {
        forget(state, path, identical)?;
    }
    Ok(TakenBack {
        outcome,
        hooks,
        env,
        identical,
    })
}

/// The record of one file, if we ever changed it.
pub fn recorded(state: &State, path: &Path) -> Result<Option<Changed>> {
    let record = read_record(state)?;
    let entry = record.get("settings").and_then(|all| all.get(path_key(path)?));
    Ok(match entry {
        Some(value) => Some(serde_json::from_value(value.clone()).with_context(|| bad_record(state))?),
        None => None,
    })
}

/// Sets or clears one top-level member of the record, beside the settings.
pub fn note(state: &State, member: &str, value: Option<Value>) -> Result<()> {
    let _held = hold(state)?;
    let mut record = read_record(state)?;
    if value.is_none() && !record.contains_key(member) {
        return Ok(());
    }
    match value {
        Some(value) => record.insert(member.to_owned(), value),
        None => record.remove(member),
    };
    write_record(state, record)
}

/// The whole record; empty where there is none.
pub fn read_record(state: &State) -> Result<Map<String, Value>> {
    let Some(bytes) = state.read(RECORD).with_context(|| bad_record(state))? else {
        return Ok(Map::new());
    };
    let record: Map<String, Value> = serde_json::from_slice(&bytes).with_context(|| bad_record(state))?;
    Ok(record)
}

/// A settings file as it is: the file a link points at, its content if any.
#[derive(Debug)]
pub struct Found {
    /// The file itself, links resolved.
    pub target: PathBuf,
    /// Its content; `None` where it is missing.
    pub bytes: Option<Vec<u8>>,
    mode: u32,
}

/// Looks at a settings file: a link is followed, once it is clear whose the
/// target is.
pub fn find(path: &Path) -> Result<Found> {
    let target = match fs_err::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if fs_err::symlink_metadata(path).is_ok() {
                bail!(
                    "{} is a link to a missing file; make the file or remove the link",
                    path.display()
                );
            }
            return Ok(Found {
                target: path.to_path_buf(),
                bytes: None,
                mode: 0o600,
            });
        }
        Err(error) => return Err(error.into()),
    };
    let shown = target.display();
    let meta = fs_err::metadata(&target)?;
    if !meta.is_file() {
        bail!("{shown} is not a regular file; move it away");
    }
    if meta.len() > SETTINGS_BYTES_MAX {
        bail!("{shown} is larger than {SETTINGS_BYTES_MAX} bytes; that is no settings file");
    }
    Ok(Found {
        bytes: Some(fs_err::read(&target)?),
        mode: meta.permissions().mode() & 0o7777,
        target,
    })
}

fn writable(found: &Found) -> Result<()> {
    let shown = found.target.display();
    if found.bytes.is_none() {
        return Ok(());
    }
    if fs_err::metadata(&found.target)?.uid() != rustix::process::geteuid().as_raw() {
        bail!("{shown} belongs to another user; run this as its owner");
    }
    if found.mode & 0o200 == 0 {
        bail!("{shown} is read-only; `chmod u+w` it, or change it where it is generated");
    }
    Ok(())
}

fn edit(
    state: &State,
    path: &Path,
    mode: Mode,
    change: impl FnOnce(&[u8], &mut Changed) -> Result<Option<Vec<u8>>>,
) -> Result<Outcome> {
    let Some(key) = path_key(path) else {
        bail!("{} is not UTF-8; name the folder in UTF-8", path.display());
    };
    let _held = match mode {
        Mode::Write => Some(hold(state)?),
        Mode::DryRun => None,
    };
    let mut record = read_record(state)?;
    let found = find(path)?;
    let first = recorded(state, path)?.is_none();
    let mut changed = recorded(state, path)?.unwrap_or_else(|| Changed {
        existed: found.bytes.is_some(),
        made_dir: found.target.parent().is_some_and(|dir| !dir.exists()),
        ..Changed::default()
    });
    let current = found.bytes.as_deref().unwrap_or_default();
    let wanted = change(current, &mut changed)
        .with_context(|| format!("{} is left as it is", found.target.display()))?;
    // A missing file that stays blank stays missing.
    let wanted = wanted.filter(|bytes| found.bytes.is_some() || !bytes.is_empty());
    let unchanged = wanted.as_deref() == found.bytes.as_deref();
    if !unchanged {
        writable(&found)?;
    }
    if mode == Mode::DryRun {
        return Ok(match (unchanged, wanted) {
            (true, _) => Outcome::Unchanged,
            (false, Some(_)) => Outcome::Written,
            (false, None) => Outcome::Removed,
        });
    }
    if first && (!unchanged || changed.plugin) && found.bytes.is_some() {
        changed.backup = Some(keep_backup(state, current)?);
    }
    if !first || !unchanged || changed.plugin {
        let entry = serde_json::to_value(&changed)?;
        match record.entry("settings").or_insert_with(|| Map::new().into()) {
            Value::Object(all) => all.insert(key.to_owned(), entry),
            _ => bail!(bad_record(state)),
        };
        write_record(state, record)?;
    }
    if unchanged {
        return Ok(Outcome::Unchanged);
    }
    if let Some(bytes) = wanted {
        replace(&found, &bytes)?;
        return Ok(Outcome::Written);
    }
    still_the_same(&found)?;
    fs_err::remove_file(&found.target)?;
    if changed.made_dir
        && let Some(dir) = found.target.parent()
    {
        // Only if nobody else put anything there.
        std::fs::remove_dir(dir).ok();
    }
    Ok(Outcome::Removed)
}

fn entries_of(changed: &Changed, key: &str) -> Vec<(String, String)> {
    let ours = changed.env.iter().filter(|(name, _)| name == key);
    ours.cloned().collect()
}

fn without_env(current: &[u8], env: &[(String, String)], changed: &Changed) -> Result<Option<Vec<u8>>> {
    let ours = Ours { hooks: false, env };
    let back = settings_edit::take(current, ours, &changed.before)?;
    Ok(back.or_else(|| changed.existed.then(|| blank_of(changed))))
}

fn blank_of(changed: &Changed) -> Vec<u8> {
    changed.before.blank.clone().unwrap_or_default().into_bytes()
}

fn remember(changed: &mut Changed, new: Before) {
    for (path, space) in new.empty {
        changed.before.empty.entry(path).or_insert(space);
    }
    if changed.before.blank.is_none() {
        changed.before.blank = new.blank;
    }
}

fn replace(found: &Found, bytes: &[u8]) -> Result<()> {
    let dir = found.target.parent().context("the settings file has no folder")?;
    if !dir.exists() {
        fs_err::create_dir_all(dir)?;
        fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o700))?;
    }
    let beside = tempfile::Builder::new()
        .prefix(".settings.")
        .suffix(".tmp")
        .tempfile_in(dir)
        .with_context(|| format!("nothing can be written in {}", dir.display()))?;
    fs_err::write(beside.path(), bytes)?;
    beside
        .as_file()
        .set_permissions(std::fs::Permissions::from_mode(found.mode))?;
    beside.as_file().sync_all()?;
    still_the_same(found)?;
    beside
        .persist(&found.target)
        .with_context(|| format!("{} could not be replaced", found.target.display()))?;
    Ok(())
}

/// The client writes the file too: what changed since it was read is not lost.
fn still_the_same(found: &Found) -> Result<()> {
    if find(&found.target)?.bytes == found.bytes {
        return Ok(());
    }
    bail!(
        "{} was changed by somebody else just now; run this again",
        found.target.display()
    )
}

fn hold(state: &State) -> Result<lock::Lock> {
    lock::take(state, "installed.lock", LOCK_WAIT_MS)?.with_context(|| {
        format!(
            "another install or adopt is at work in {}; run this again",
            state.path().display()
        )
    })
}

fn keep_backup(state: &State, bytes: &[u8]) -> Result<String> {
    state.make_dirs("backup")?;
    for number in 1..1000 {
        let name = format!("backup/settings.{number}.json");
        if state.create(&name, bytes, Durability::Power)? {
            return Ok(name);
        }
    }
    bail!("{}/backup is full; empty it", state.path().display())
}

fn forget(state: &State, path: &Path, identical: Option<bool>) -> Result<()> {
    let _held = hold(state)?;
    let mut record = read_record(state)?;
    let backup = recorded(state, path)?.and_then(|changed| changed.backup);
    if let (Some(Value::Object(all)), Some(key)) = (record.get_mut("settings"), path_key(path)) {
        all.remove(key);
    } else {
        return Ok(());
    }
    write_record(state, record)?;
    match backup {
        Some(name) if identical == Some(true) => Ok(state.remove(&name)?),
        _ => Ok(()),
    }
}

fn write_record(state: &State, mut record: Map<String, Value>) -> Result<()> {
    let format = record.get("format").map_or(Some(0), Value::as_u64);
    if format.is_none_or(|format| format > RECORD_FORMAT) {
        bail!(
            "{}/{RECORD} was written by a newer version; use that one",
            state.path().display()
        );
    }
    record.insert("format".to_owned(), RECORD_FORMAT.into());
    let mut text = serde_json::to_string_pretty(&record)?;
    text.push('\n');
    state.replace(RECORD, text.as_bytes(), Durability::Power)?;
    Ok(())
}

fn bad_record(state: &State) -> String {
    format!(
        "{}/{RECORD} can't be read; move it away to go on without it",
        state.path().display()
    )
}

fn path_key(path: &Path) -> Option<&str> {
    path.to_str()
}
