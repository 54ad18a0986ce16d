//! session-lease: who hosts a session, and each of its turn boundaries.
//!
//! Runs on SessionStart, UserPromptSubmit, Stop, Notification and SessionEnd, in
//! the way of a person's turn, so it does one thing: append a line to
//! `session/<sid>/lease.jsonl`. It also stops the client's own continuation
//! after a limit where the session went on already; nothing else in the suite
//! sees that prompt in time.

#![cfg_attr(not(test), no_main)]

mod gather;
mod guard;
mod sweep;

use shared::edge::lease_file;
use shared::hook::{Answer, Call};
use shared::pure::lease::{Event, FORMAT, Line};
use shared::pure::prompt_author::{self, Author};

shared::hook_main!("session-lease", work);

fn work(call: &Call) -> anyhow::Result<Answer> {
    if call.payload.is_subagent() {
        return Ok(Answer::Nothing);
    }
    let Some(event) = call.payload.hook_event_name.as_deref() else {
        call.log("unknown: the payload names no event");
        return Ok(Answer::Nothing);
    };
    let mut line = Line {
        format: FORMAT,
        at: call.started,
        prompt_id: call.prompt_id().map(|id| id.as_str().to_owned()),
        ..Line::default()
    };
    let mut answer = Answer::Nothing;
    match event {
        "SessionStart" => {
            line.event = Event::Start;
            line.what = call.payload.source.as_deref().map(str::to_owned);
            line.host = Some(gather::host(call));
            if let Some(host) = &line.host {
                line.follows = gather::follow(call, host);
            }
        }
        "UserPromptSubmit" => match prompt_author::author(call.payload.prompt.as_deref().unwrap_or_default())
        {
            Author::Person => line.event = Event::Prompt,
            Author::Program => line.event = Event::Injected,
            Author::Native if guard::went_on_already(call) => {
                line.event = Event::NativeStopped;
                answer = Answer::Two(guard::REASON.to_owned());
            }
            Author::Native => line.event = Event::NativeContinue,
        },
        "Stop" => {
            line.event = Event::Stop;
            line.background_tasks = u32::try_from(call.payload.background_tasks.len()).ok();
            line.session_crons = u32::try_from(call.payload.session_crons.len()).ok();
        }
        "Notification" => {
            line.event = Event::Notify;
            line.what = call.payload.notification_type.as_deref().map(str::to_owned);
        }
        "SessionEnd" => {
            line.event = Event::End;
            line.what = call.payload.reason.as_deref().map(str::to_owned);
            gather::forget(call);
        }
        other => {
            call.log(&format!("unknown: no work for the event {other}"));
            return Ok(Answer::Nothing);
        }
    }
    if call.explain {
        return Ok(Answer::Json(format!("{}\n", serde_json::to_string(&line)?)));
    }
    let is_large = lease_file::append(call.state, &call.sid, &line)?;
    if is_large && line.event == Event::Stop {
        lease_file::begin_anew(call.state, &call.sid)?;
    }
    if line.event == Event::Start {
        sweep::once_a_day(call);
    }
    Ok(answer)
}
