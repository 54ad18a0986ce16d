//! `config.json` under the state root: what a person may set.
//!
//! Missing file, missing keys: the defaults. A file that can't be read or is of
//! a newer format counts as missing, and the caller is told so.

use serde::{Deserialize, Serialize};

use super::state::State;

/// The newest format that is understood.
pub const FORMAT: u32 = 1;

/// What a person may set. Every key has a default; unknown keys are left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// [`FORMAT`].
    pub format: u32,
    /// Command to run on a signal, word by word; the signal's file name is added
    /// as the last word. None: nothing is run.
    pub notify: Option<Vec<String>>,
    /// How long after a reset a parked session is continued, in seconds. The
    /// client's own continuation comes 75 to over 104 s after it (measured,
    /// 2.1.332) and goes first.
    pub park_margin_s: u64,
    /// A wall that resets within this many seconds is waited out; 0: never.
    pub wait_out_s: u64,
    /// How long the client's limit dialog may stand before a wake, in seconds,
    /// until the session is restarted on the other account (in tmux only); 0:
    /// never, a person has to close it.
    pub dialog_grace_s: u64,
    /// First wait before a wake after a transient failure, in seconds.
    pub backoff_s_min: u64,
    /// Longest such wait, in seconds.
    pub backoff_s_max: u64,
    /// Process restarts of one session in a rolling day (rule W4).
    pub restarts_per_day_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            format: FORMAT,
            notify: None,
            park_margin_s: 240,
            wait_out_s: 0,
            dialog_grace_s: 600,
            backoff_s_min: 30,
            backoff_s_max: 1800,
            restarts_per_day_max: 3,
        }
    }
}

/// Reads the config; the second value says why the defaults stand in, if they do.
pub fn read(state: &State) -> (Config, Option<String>) {
    let bytes = match state.read("config.json") {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (Config::default(), None),
        Err(why) => {
            return (
                Config::default(),
                Some(format!("config.json can't be read: {why}")),
            );
        }
    };
    match serde_json::from_slice::<Config>(&bytes) {
        Ok(config) if config.format <= FORMAT => (config, None),
        Ok(config) => {
            let why = format!(
                "config.json has format {}, this version knows {FORMAT}",
                config.format
            );
            (Config::default(), Some(why))
        }
        Err(why) => (
            Config::default(),
            Some(format!("config.json is not understood: {why}")),
        ),
    }
}
