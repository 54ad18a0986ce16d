//! What a start line holds: the process that hosts the session.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use shared::edge::state::Durability;
use shared::edge::{client_session, env, proc, shard};
use shared::hook::Call;
use shared::pure::lease::{Host, Kind};

/// The client's process, as far as it can be seen. What can't be read is left
/// out: absent is never a fact.
pub(crate) fn host(call: &Call) -> Host {
    let Some(pid) = client_pid() else {
        return Host::default();
    };
    let argv = proc::argv(pid).unwrap_or_default();
    let words: Vec<String> = argv
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let registered = client_session::config_dir(call.payload.transcript_path.as_deref())
        .and_then(|dir| client_session::read(&dir, pid).ok().flatten());
    let is_background = env::is_set(env::CLAUDE_JOB_DIR)
        || registered
            .as_ref()
            .is_some_and(|session| session.kind.as_deref() == Some("bg"));
    let shard = shard(call);
    Host {
        pid,
        start: proc::ProcessId::of(pid).map_or(0, |process| process.start),
        machine: proc::machine_id(),
        pid_namespace: proc::pid_namespace(pid),
        cwd: proc::cwd(pid).map(|path| path.to_string_lossy().into_owned()),
        argv_lossy: argv
            .iter()
            .zip(&words)
            .any(|(raw, text)| *raw != OsString::from(text)),
        kind: Kind::of(&words, is_background),
        argv: words,
        executable: proc::executable(pid).map(|path| path.to_string_lossy().into_owned()),
        version: registered.and_then(|session| session.version),
        tmux_socket: env::text(env::TMUX).and_then(|tmux| tmux.split(',').next().map(str::to_owned)),
        tmux_pane: env::text(env::TMUX_PANE),
        account: shard.as_deref().and_then(|shard| account(call, shard)),
        shard,
    }
}

/// The pid the client names; without one the parent is the client, since hooks
/// are registered without a shell between.
fn client_pid() -> Option<i32> {
    let named = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    named.or_else(|| rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()))
}

/// The shard, where the session's login is one of ours.
fn shard(call: &Call) -> Option<String> {
    shard::name_of(call.state, &env::path(env::CLAUDE_SECURESTORAGE_CONFIG_DIR)?)
}

fn account(call: &Call, shard: &str) -> Option<String> {
    let target = fs_err::read_link(call.state.path().join("shards").join(shard)).ok()?;
    target.file_name()?.to_str().map(str::to_owned)
}

/// Which session a process hosts now: `hosts/<pid>.json`.
///
/// `/clear` gives the same process a new session without naming the old one;
/// this is how the new lease learns which one it follows (rule W11).
#[derive(Serialize, Deserialize)]
pub(crate) struct Hosted {
    format: u32,
    pub(crate) start: u64,
    sid: String,
}

/// The newest format of the note that this version knows.
const HOSTED_FORMAT: u32 = 1;

#[derive(Deserialize)]
struct Format {
    format: u32,
}

fn hosted_name(pid: i32) -> String {
    format!("hosts/{pid}.json")
}

/// Notes that the process hosts this session; gives the one it hosted before.
pub(crate) fn follow(call: &Call, host: &Host) -> Option<String> {
    if host.pid == 0 || call.explain {
        return None;
    }
    let name = hosted_name(host.pid);
    let bytes = call.state.read(&name).ok().flatten().unwrap_or_default();
    if let Ok(Format { format }) = serde_json::from_slice(&bytes)
        && format > HOSTED_FORMAT
    {
        call.log(&format!(
            "{name} has format {format} and is left alone: upgrade Rungs"
        ));
        return None;
    }
    let before = serde_json::from_slice::<Hosted>(&bytes).ok();
    let hosted = Hosted {
        format: HOSTED_FORMAT,
        start: host.start,
        sid: call.sid.as_str().to_owned(),
    };
    if let Ok(bytes) = serde_json::to_vec(&hosted)
        && let Err(error) = call.state.replace(&name, &bytes, Durability::Process)
    {
        call.log(&format!("{name} could not be written: {error}"));
    }
    before
        .filter(|before| before.start == host.start && before.sid != hosted.sid)
        .map(|before| before.sid)
}

/// Takes the note away when the process ends. After a `/clear` or `/resume` the
/// same process goes on, and its next start line needs the note.
pub(crate) fn forget(call: &Call) {
    let goes_on = matches!(call.payload.reason.as_deref(), Some("clear" | "resume"));
    if let Some(pid) = client_pid().filter(|_| !goes_on && !call.explain) {
        call.state.remove(&hosted_name(pid)).ok();
    }
}
