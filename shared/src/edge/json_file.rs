//! Our own JSON objects, changed under a lock and without loss.
//!
//! Each carries `format`. One of a newer format is read and never written;
//! fields that this version does not know are kept as they are. A file that is
//! not understood is left alone too: whoever needs it does nothing and says so.

use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::lock;
use super::state::{Durability, State};

/// How long a change waits for the lock, in milliseconds.
const LOCK_WAIT_MS: u64 = 2000;

/// A JSON object as it stands on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Map<String, Value>);

impl Object {
    /// One field; the default where it is missing or null.
    ///
    /// # Errors
    /// It has another form than expected.
    pub fn field<T: DeserializeOwned + Default>(&self, key: &str) -> anyhow::Result<T> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(T::default()),
            Some(value) => {
                T::deserialize(value).with_context(|| format!("the field {key} is not understood"))
            }
        }
    }

    /// Sets one field.
    ///
    /// # Errors
    /// It can't be written as JSON.
    pub fn set(&mut self, key: &str, value: impl Serialize) -> anyhow::Result<()> {
        self.0.insert(key.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    fn format(&self) -> u64 {
        self.0.get("format").and_then(Value::as_u64).unwrap_or(0)
    }
}

/// Reads the object; a missing file is an empty one.
///
/// # Errors
/// Unreadable, or no JSON object.
pub fn read(state: &State, name: &str) -> anyhow::Result<Object> {
    let bytes = state
        .read(name)
        .with_context(|| format!("{name} can't be read"))?;
    let Some(bytes) = bytes else {
        return Ok(Object::default());
    };
    let map = serde_json::from_slice(&bytes)
        .with_context(|| format!("{name} is not understood: move it away to begin anew"))?;
    Ok(Object(map))
}

/// Reads the object, lets `change` change it, and writes it where it did; all
/// under the lock `<name>.lock`. An error of `change` writes nothing.
///
/// # Errors
/// As [`read`]; the lock stays with another process; the file is of a newer
/// format than `format`; `change` fails; it can't be written.
pub fn change<T>(
    state: &State,
    name: &str,
    format: u64,
    durability: Durability,
    change: impl FnOnce(&mut Object) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let lock_name = format!("{name}.lock");
    let Some(held) =
        lock::take(state, &lock_name, LOCK_WAIT_MS).with_context(|| format!("{lock_name} can't be taken"))?
    else {
        bail!("{lock_name} is held by another process");
    };
    let mut object = read(state, name)?;
    if object.format() > format {
        bail!(
            "{name} has format {}, this version writes {format}: upgrade Rungs",
            object.format()
        );
    }
    let before = object.clone();
    let result = change(&mut object)?;
    if object != before {
        object.set("format", format)?;
        state
            .replace(name, &serde_json::to_vec(&object.0)?, durability)
            .with_context(|| format!("{name} can't be written"))?;
    }
    drop(held);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, State) {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        (dir, state)
    }

    fn add_one(state: &State) -> anyhow::Result<u64> {
        change(state, "n.json", 1, Durability::Process, |object| {
            let n: u64 = object.field("n")?;
            object.set("n", n + 1)?;
            Ok(n + 1)
        })
    }

    #[test]
    fn fields_of_others_survive() {
        let (_dir, state) = state();
        state
            .replace(
                "n.json",
                br#"{"format":1,"theirs":{"a":[1]}}"#,
                Durability::Process,
            )
            .unwrap();
        assert_eq!((add_one(&state).unwrap(), add_one(&state).unwrap()), (1, 2));
        let text = String::from_utf8(state.read("n.json").unwrap().unwrap()).unwrap();
        assert_eq!(text, r#"{"format":1,"n":2,"theirs":{"a":[1]}}"#);
    }

    #[test]
    fn what_is_newer_or_not_understood_is_left_alone() {
        for content in [
            &br#"{"format":2,"n":1}"#[..],
            b"[]",
            b"{\"n\":1",
            br#"{"n":"one"}"#,
        ] {
            let (_dir, state) = state();
            state.replace("n.json", content, Durability::Process).unwrap();
            assert!(add_one(&state).is_err());
            assert_eq!(state.read("n.json").unwrap().unwrap(), content);
        }
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (_dir, state) = state();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let own = State::open_root(state.path()).unwrap();
                    for _ in 0..20 {
                        add_one(&own).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&state, "n.json").unwrap().field::<u64>("n").unwrap(), 80);
    }
}
