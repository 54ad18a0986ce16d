//! The gate's memory: `session/<sid>/gate.json`.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use shared::edge::state::Durability;
use shared::hook::Call;

use crate::decide::{Latch, Parked};

/// The format that this version writes, and the newest that it understands.
const FORMAT: u64 = 1;

/// The file's fields as read, those that this version does not know included.
pub(crate) type Fields = Map<String, Value>;

/// What an entry remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    /// A hold.
    Held,
    /// A notice about blocks.
    Noticed,
}

impl Entry {
    fn field(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Noticed => "noticed",
        }
    }
}

fn name(call: &Call) -> String {
    format!("session/{}/gate.json", call.sid)
}

/// Reads the latch.
pub(crate) fn read(call: &Call) -> (Latch, Fields) {
    match fields(call) {
        Ok(fields) => match (entry(&fields, Entry::Held), entry(&fields, Entry::Noticed)) {
            (Ok(held), Ok(noticed)) => (Latch::Known { held, noticed }, fields),
            (Err(why), _) | (_, Err(why)) => (unreadable(call, &why), Fields::new()),
        },
        Err(why) => (unreadable(call, &why), Fields::new()),
    }
}

fn unreadable(call: &Call, why: &str) -> Latch {
    Latch::Unreadable(format!(
        "{} {why}; the gate holds again once the file is removed",
        name(call)
    ))
}

fn fields(call: &Call) -> Result<Fields, String> {
    let bytes = call
        .state
        .read(&name(call))
        .map_err(|why| format!("can't be read ({why})"))?;
    let Some(bytes) = bytes else {
        return Ok(Fields::new());
    };
    let fields: Fields =
        serde_json::from_slice(&bytes).map_err(|why| format!("is not understood ({why})"))?;
    match fields.get("format").and_then(Value::as_u64) {
        Some(FORMAT) => Ok(fields),
        Some(format) => Err(format!("has format {format}, this version knows {FORMAT}")),
        None => Err("names no format".to_owned()),
    }
}

fn entry(fields: &Fields, entry: Entry) -> Result<Option<Parked>, String> {
    match fields.get(entry.field()) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => Parked::deserialize(value)
            .map(Some)
            .map_err(|why| format!("is not understood ({}: {why})", entry.field())),
    }
}

/// Remembers an entry.
///
/// # Errors
/// It could not be written; then nobody must be held.
pub(crate) fn write(call: &Call, mut fields: Fields, entry: Entry, parked: &Parked) -> anyhow::Result<()> {
    fields.insert("format".to_owned(), FORMAT.into());
    fields.insert(entry.field().to_owned(), serde_json::to_value(parked)?);
    fields.insert(format!("{}_at", entry.field()), call.started.into());
    let bytes = serde_json::to_vec(&fields)?;
    call.state.replace(&name(call), &bytes, Durability::Process)?;
    Ok(())
}
