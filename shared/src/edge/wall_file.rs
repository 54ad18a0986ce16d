//! `session/<sid>/wall.json`: the session's last wall and its moves, written by
//! walled-heal alone.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pure::session_id::SessionId;

use super::state::{Durability, State};

/// The format that this version writes, and the newest that it understands.
pub const FORMAT: u32 = 1;

/// Moves that are remembered; older ones go.
const MOVES_MAX: usize = 50;

/// The session's last wall and its moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WallFile {
    /// [`FORMAT`].
    pub format: u32,
    /// `moved` or `parked`.
    pub state: String,
    /// When that was written (ms since 1970).
    pub at: i64,
    /// The window that was hit, where it is known.
    pub window: Option<String>,
    /// When it opens again (s since 1970), where it is known.
    pub resets_at: Option<i64>,
    /// Parked: when the session is continued at the latest (s since 1970).
    pub until: Option<i64>,
    /// Moves, oldest first.
    pub moves: Vec<Move>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// One move of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Move {
    /// When (ms since 1970).
    pub at: i64,
    /// Account left.
    pub from: String,
    /// Account gone to.
    pub to: String,
    /// `wall` or `dead-login`.
    pub cause: String,
}

fn name(sid: &SessionId) -> String {
    format!("session/{sid}/wall.json")
}

/// Reads it; a missing file is an empty one.
///
/// # Errors
/// Unreadable, not understood, or of a newer format: then nothing is known of
/// earlier moves, and no budget could be kept.
pub fn read(state: &State, sid: &SessionId) -> anyhow::Result<WallFile> {
    let name = name(sid);
    let Some(bytes) = state
        .read(&name)
        .with_context(|| format!("{name} can't be read"))?
    else {
        return Ok(WallFile::default());
    };
    let file: WallFile =
        serde_json::from_slice(&bytes).with_context(|| format!("{name} is not understood"))?;
    if file.format > FORMAT {
        bail!("{name} has format {}, this version knows {FORMAT}", file.format);
    }
    Ok(file)
}

/// Writes it whole.
///
/// # Errors
/// As the system says.
pub fn write(state: &State, sid: &SessionId, file: &WallFile) -> anyhow::Result<()> {
    let mut file = file.clone();
    file.format = FORMAT;
    let surplus = file.moves.len().saturating_sub(MOVES_MAX);
    file.moves.drain(..surplus);
    state.replace(
        &name(sid),
        &serde_json::to_vec_pretty(&file)?,
        Durability::Process,
    )?;
    Ok(())
}
