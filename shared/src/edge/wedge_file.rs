//! `session/<sid>/wedge.json`: what rung 1 did to a session, and how often.
//!
//! Written through here alone, under its lock: by wedge-heal, and for the wake
//! after a throttle by walled-heal.

use serde::{Deserialize, Serialize};

use crate::pure::session_id::SessionId;
use crate::pure::tally::{Limit, Room, Tally};

use super::json_file;
use super::state::{Durability, State};

/// The format that this version writes.
pub const FORMAT: u64 = 1;

/// Kinds of acts that are counted, each in a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A wake after a transient failure: counted, never capped.
    TransientWake,
    /// Any other wake.
    Wake,
    /// A restart of the process.
    Restart,
    /// A restart on another account, past the client's limit dialog: rung 2's,
    /// with a cap of its own.
    WallRestart,
}

impl Act {
    fn key(self) -> &'static str {
        match self {
            Self::TransientWake => "transient_wakes",
            Self::Wake => "wakes",
            Self::Restart => "restarts",
            Self::WallRestart => "wall_restarts",
        }
    }
}

/// The newest heal, to know an identical failure after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastHeal {
    /// `wake` or `restart`.
    pub act: String,
    /// The failure it was made for, as the classifier prints it.
    pub fingerprint: String,
    /// When (ms since 1970).
    pub at: i64,
}

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wedge {
    /// Wakes after transient failures.
    pub transient_wakes: Tally,
    /// Other wakes.
    pub wakes: Tally,
    /// Restarts.
    pub restarts: Tally,
    /// Restarts on another account, past the client's limit dialog.
    pub wall_restarts: Tally,
    /// The newest wake or restart that was not for a transient failure.
    pub last: Option<LastHeal>,
}

/// The file's name under the root.
pub fn name(sid: &SessionId) -> String {
    format!("session/{sid}/wedge.json")
}

/// Reads it; a missing file is an empty one.
///
/// # Errors
/// Unreadable, not understood, or of a newer format: budgets that can't be kept
/// must not be spent.
pub fn read(state: &State, sid: &SessionId) -> anyhow::Result<Wedge> {
    let object = json_file::read(state, &name(sid))?;
    let format: u64 = object.field("format")?;
    anyhow::ensure!(
        format <= FORMAT,
        "{} has format {format}, this version knows {FORMAT}: upgrade Rungs",
        name(sid)
    );
    Ok(Wedge {
        transient_wakes: object.field(Act::TransientWake.key())?,
        wakes: object.field(Act::Wake.key())?,
        restarts: object.field(Act::Restart.key())?,
        wall_restarts: object.field(Act::WallRestart.key())?,
        last: object.field("last")?,
    })
}

/// Counts one act at `now` if the limits leave room for it, in one step; `last`
/// is recorded with it. To be called just before the act.
///
/// # Errors
/// As [`json_file::change`]; then nothing must be done.
pub fn spend(
    state: &State,
    sid: &SessionId,
    act: Act,
    limits: &[Limit],
    now: i64,
    last: Option<&LastHeal>,
) -> anyhow::Result<Room> {
    json_file::change(state, &name(sid), FORMAT, Durability::Power, |object| {
        let mut tally: Tally = object.field(act.key())?;
        tally.settle(now);
        let room = tally.room(now, limits);
        if room == Room::Free {
            tally.record(now);
            if let Some(last) = last {
                object.set("last", last)?;
            }
        }
        object.set(act.key(), &tally)?;
        Ok(room)
    })
}

/// Counts one restart on the whole machine (`machine-restarts.json`) if the
/// limits leave room.
///
/// # Errors
/// As [`json_file::change`]; then nothing must be done.
pub fn spend_on_machine(state: &State, limits: &[Limit], now: i64) -> anyhow::Result<Room> {
    json_file::change(
        state,
        "machine-restarts.json",
        FORMAT,
        Durability::Power,
        |object| {
            let mut tally: Tally = object.field(Act::Restart.key())?;
            tally.settle(now);
            let room = tally.room(now, limits);
            if room == Room::Free {
                tally.record(now);
            }
            object.set(Act::Restart.key(), &tally)?;
            Ok(room)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tally::{DAY_MS, session_restarts};

    #[test]
    fn the_fourth_restart_of_a_day_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        let sid = SessionId::parse("s1").unwrap();
        let limits = session_restarts(3);
        for now in [10, 20, 30] {
            assert_eq!(
                spend(&state, &sid, Act::Restart, &limits, now, None).unwrap(),
                Room::Free
            );
        }
        let full = spend(&state, &sid, Act::Restart, &limits, 40, None).unwrap();
        assert_eq!(full, Room::FullUntil(10 + DAY_MS));
        let wedge = read(&state, &sid).unwrap();
        assert_eq!(wedge.restarts.acts(), [10, 20, 30]);
        assert_eq!(wedge.wakes, Tally::default());
    }
}
