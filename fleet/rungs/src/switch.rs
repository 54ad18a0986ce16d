//! `rungs off` and `rungs on`: one file that every hook looks for, at its start
//! and again just before it acts.

use std::process::ExitCode;

use anyhow::Result;
use shared::edge::clock;
use shared::edge::state::Durability;
use shared::pure::time_text;

use crate::out;
use crate::places::{self, RootOption};

/// The file under the state root.
pub(crate) const OFF: &str = "off";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    root: RootOption,
}

pub(crate) fn off(args: &Args) -> Result<ExitCode> {
    let state = places::open(&args.root.path()?)?;
    let since = format!("{}\n", time_text::rfc3339_ms(clock::now_ms()));
    let made = state.create(OFF, since.as_bytes(), Durability::Power)?;
    out::line(if made {
        "Off: no hook acts until `rungs on`."
    } else {
        "It was off already: no hook acts until `rungs on`."
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn on(args: &Args) -> Result<ExitCode> {
    let state = args.root.open_existing()?;
    let was_off = state.as_ref().is_some_and(|state| state.exists(OFF));
    if let Some(state) = state {
        state.remove(OFF)?;
    }
    out::line(if was_off {
        "On: the hooks act again from the next turn boundary."
    } else {
        "It was on already."
    });
    Ok(ExitCode::SUCCESS)
}
