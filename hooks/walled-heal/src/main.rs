//! walled-heal: moves a session that hit its account's usage limit.
//!
//! Runs on StopFailure as an `asyncRewake` hook, beside the person's turn. The
//! order is: decide from the payload, flip the shard, wake; the exact reset is read
//! from the transcript afterwards. A quick wake matters because everything the
//! client does by itself at a limit comes a moment later. Where the window opens
//! more than a day later its dialog still comes first (measured, 2.1.332): see
//! `afterwards`.

mod act;
mod afterwards;
mod decide;
mod gather;
mod park;
mod wording;

use std::process::ExitCode;

use shared::edge::config;
use shared::hook::{self, Answer, Arguments, Call};
use shared::pure::owner::{self, Owner};
use shared::restart;

fn main() -> ExitCode {
    let arguments = Arguments::parse(std::env::args_os().skip(1));
    if let Some(order) = afterwards::Order::from_words(&arguments) {
        order.carry_out();
        return ExitCode::SUCCESS;
    }
    if let Some(code) = restart::verb(&arguments) {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    ExitCode::from(u8::try_from(hook::run("walled-heal", work)).unwrap_or(0))
}

fn work(call: &Call) -> anyhow::Result<Answer> {
    if !call.payload.is_event("StopFailure") {
        call.log("not mine: only StopFailure is");
        return Ok(Answer::Nothing);
    }
    if owner::owner(call.payload.error.as_deref()) != Owner::WalledHeal {
        return Ok(Answer::Nothing);
    }
    let (config, default_because) = config::read(call.state);
    if let Some(why) = default_because {
        call.log(&format!("defaults stand in: {why}"));
    }
    if call.payload.is_subagent() {
        act::charge_for_subagent(call)?;
        return Ok(Answer::Nothing);
    }
    let world = gather::world(call, &config)?;
    let plan = decide::plan(&world);
    if call.explain {
        return act::explain(call, &config, &world, &plan);
    }
    act::carry_out(call, &config, &world, &plan)
}
