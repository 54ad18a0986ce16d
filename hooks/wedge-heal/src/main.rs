//! wedge-heal: wakes or restarts a session whose turn died.
//!
//! Runs on StopFailure. It asks only whether the session is able to go on: a
//! failure that passes is waited out and the session waked in place; one that
//! this process would repeat for ever is cured by a restart of the same session;
//! one that nothing here heals is named and handed up by a signal. It heals its
//! own session and no other. See the package's README.

#![cfg_attr(not(test), no_main)]

mod act;
mod decide;
mod gather;

use shared::hook::{Answer, Call};
use shared::restart;
use shared::restart::helper::{self, Settled};

shared::hook_main!("wedge-heal", work, restart::verb);

/// The name in log lines and signals.
pub(crate) const NAME: &str = "wedge-heal";

fn work(call: &Call) -> anyhow::Result<Answer> {
    let why_not = gather::not_ours(call);
    if let Some(why) = &why_not
        && !call.explain
    {
        call.log(why);
        return Ok(Answer::Nothing);
    }
    if !call.explain && helper::settle(call)? == Settled::UnderWay {
        call.log("nothing: a restart of this session is under way");
        return Ok(Answer::Nothing);
    }
    let world = gather::world(call);
    let decision = match why_not {
        Some(why) => decide::Decision {
            act: decide::Act::Nothing,
            why,
        },
        None => decide::decide(&world),
    };
    if call.explain {
        return Ok(Answer::Json(decide::explanation(&world, &decision)));
    }
    act::carry_out(call, &world, &decision)
}
