//! Everything that the decision looks at, read from the payload and the state.

use serde::Deserialize;

use shared::edge::{lease_file, recheck};
use shared::hook::Call;
use shared::pure::goal::{self, Standing};
use shared::pure::hook_payload::BackgroundTask;
use shared::pure::lease::{Lease, PromptSeen};
use shared::pure::session_id::SessionId;

use crate::decide::{self, Block, Clues, Goal, Latch, Switch, World};
use crate::latch::{self, Fields};
use crate::park::Marks;

/// The newest format of a ledger row that this version understands.
const BLOCK_FORMAT: u32 = 1;

/// What the gate saw.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// What it decides from.
    pub(crate) world: World<'a>,
    /// The latch's fields, for the next write.
    pub(crate) latch: Fields,
}

/// Looks. `None` where the session has neither a goal nor a block: the common
/// case, so it costs two failed opens.
pub(crate) fn look<'a>(call: &'a Call) -> Option<Seen<'a>> {
    let goal = goal(call);
    let blocks = blocks(call);
    if goal == Goal::None && blocks.is_empty() {
        return None;
    }
    let payload = call.payload;
    let (latch, fields) = latch::read(call);
    let world = World {
        switch: switch(call),
        goal,
        blocks,
        has_running_task: payload.background_tasks.iter().any(can_wake),
        has_armed_wake: !payload.session_crons.is_empty(),
        marks: payload.last_assistant_message.as_deref().map(Marks::read),
        episode: episode(call, &latch),
        latch,
    };
    Some(Seen { world, latch: fields })
}

fn switch(call: &Call) -> Switch {
    if call.is_off() {
        Switch::Off
    } else if recheck::is_paused(call) {
        Switch::Paused
    } else {
        Switch::On
    }
}

fn goal(call: &Call) -> Goal {
    let name = goal::name(&call.sid);
    let bytes = match call.state.read(&name) {
        Ok(None) => return Goal::None,
        Ok(Some(bytes)) => bytes,
        Err(why) => return Goal::Unreadable(format!("{name} can't be read ({why})")),
    };
    match goal::Goal::read(&bytes, &call.sid) {
        Ok(goal) => match goal.state {
            Standing::Open => Goal::Open {
                text: goal.text,
                revision: goal.revision,
            },
            Standing::Paused => Goal::Paused,
            Standing::Done => Goal::Done,
        },
        Err(why) => Goal::Unreadable(format!("{name} {why}")),
    }
}

/// What is read of a ledger row.
#[derive(Deserialize)]
struct Row {
    format: u32,
    state: String,
    hard: bool,
}

/// The session's blocks that are open or can't be judged. A row that can't be
/// read may be an open hard one: it can park, and it can't hold.
fn blocks(call: &Call) -> Vec<Block> {
    let folder = format!("blocked/{}", call.sid);
    let names = match call.state.list(&folder) {
        Ok(names) => names,
        Err(why) => {
            call.log(&format!("unknown: {folder} can't be read ({why})"));
            return Vec::new();
        }
    };
    let ids = names.iter().filter_map(|name| name.strip_suffix(".json"));
    // Ids become paths, and are repeated to the session.
    let ids = ids.filter(|id| SessionId::parse(id).is_some());
    ids.filter_map(|id| block(call, &folder, id)).collect()
}

fn block(call: &Call, folder: &str, id: &str) -> Option<Block> {
    let bytes = call.state.read(&format!("{folder}/{id}.json"));
    let row = bytes
        .ok()
        .flatten()
        .and_then(|bytes| serde_json::from_slice::<Row>(&bytes).ok());
    let is_hard = match row.filter(|row| row.format <= BLOCK_FORMAT) {
        Some(row) => match row.state.as_str() {
            "answered" | "withdrawn" | "adopted" => return None,
            "open" => row.hard,
            _ => true,
        },
        None => true,
    };
    Some(Block {
        id: id.to_owned(),
        is_hard,
    })
}

/// Whether a task can still wake the session. Only words for an end say that it
/// can't: of the others, and of none, nobody knows.
fn can_wake(task: &BackgroundTask) -> bool {
    !matches!(
        task.status.as_deref(),
        Some("completed" | "failed" | "killed" | "stopped" | "cancelled")
    )
}

fn episode(call: &Call, latch: &Latch) -> Option<String> {
    let lease = lease(call);
    let human_prompt = lease
        .as_ref()
        .and_then(|lease| lease.last_human_prompt.as_ref())
        .map(prompt_name);
    let held = match latch {
        Latch::Known { held: Some(held), .. } => Some(held.episode.as_str()),
        _ => None,
    };
    let clues = Clues {
        human_prompt: human_prompt.as_deref(),
        has_lease: lease.is_some(),
        held,
        prompt: call.payload.prompt_id.as_deref(),
        stop_hook_active: call.payload.stop_hook_active,
    };
    decide::episode(clues).map(str::to_owned)
}

/// The lease; many wakes can push a person's prompt out of its recent part.
fn lease(call: &Call) -> Option<Lease> {
    let recent = lease_file::read_recent(call.state, &call.sid).ok()??;
    if recent.last_human_prompt.is_some() {
        return Some(recent);
    }
    lease_file::read(call.state, &call.sid).ok()?
}

fn prompt_name(seen: &PromptSeen) -> String {
    seen.prompt_id
        .clone()
        .unwrap_or_else(|| format!("at-{}", seen.at))
}
