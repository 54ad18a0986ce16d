//! Everything the decision needs, read into one value.

use std::path::Path;

use serde::Deserialize;
use shared::edge::transcript_file::{self, WINDOW_BYTES};
use shared::edge::{client_session, clock, config::Config, env, lease_file, proc, shard, wall_file, zone};
use shared::hook::Call;
use shared::pure::diagnosis::{self, Diagnosis, Evidence, Verdict};
use shared::pure::hook_payload::Payload;
use shared::pure::lease::{Kind, Lease};
use shared::pure::transcript::{Tail, Turn};

use crate::decide::World;

/// How long the failed line may take to reach the disk, in ms (measured,
/// 2.1.332: up to 210).
const FLUSH_MS: i64 = 500;

/// Largest settings file that is looked at, in bytes.
const SETTINGS_BYTES_MAX: usize = 1 << 20;

pub(crate) fn world(call: &Call, config: &Config) -> anyhow::Result<World> {
    let lease = lease_file::read(call.state, &call.sid)?.unwrap_or_default();
    let pid = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    let shard = own_shard(call);
    let moves = wall_file::read(call.state, &call.sid)?.moves;
    let since = lease.last_stop_at.unwrap_or(0);
    Ok(World {
        diagnosis: diagnose(call, &lease),
        kind: kind(pid, &lease),
        account: shard.as_deref().and_then(|shard| account(call, shard)),
        outranked_by: outranked_by(call, pid),
        flipped_at: shard
            .as_deref()
            .and_then(|name| shard::last_flip(call.state, name))
            .map(|flip| flip.at),
        shard,
        turn_began_at: turn_began_at(call, &lease),
        moves: moves.iter().filter(|made| made.at > since).count(),
        wait_out_s: config.wait_out_s,
        heard_at: call.started,
        now: clock::now_ms(),
    })
}

/// The shard that the session's login comes from, where it is one of ours.
pub(crate) fn own_shard(call: &Call) -> Option<String> {
    shard::name_of(call.state, &env::path(env::CLAUDE_SECURESTORAGE_CONFIG_DIR)?)
}

pub(crate) fn account(call: &Call, shard: &str) -> Option<String> {
    match shard::account(call.state, shard) {
        Ok(account) => account,
        Err(why) => {
            call.log(&format!("unknown account: {why}"));
            None
        }
    }
}

fn kind(pid: Option<i32>, lease: &Lease) -> Kind {
    let argv = pid.and_then(proc::argv).unwrap_or_default();
    let words: Vec<String> = argv
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match Kind::of(&words, env::is_set(env::CLAUDE_JOB_DIR)) {
        Kind::Unknown => lease.host.as_ref().map_or(Kind::Unknown, |host| host.kind),
        kind => kind,
    }
}

/// What outranks the stores, so that another account would change nothing.
fn outranked_by(call: &Call, pid: Option<i32>) -> Option<String> {
    let named = [env::ANTHROPIC_API_KEY, env::ANTHROPIC_AUTH_TOKEN]
        .into_iter()
        .find(|name| env::is_set(name));
    // The client strips this one from its hooks' environment (measured, 2.1.332).
    let stripped = || {
        let prefix = format!("{}=", env::CLAUDE_CODE_OAUTH_TOKEN);
        let words = pid.and_then(proc::environ).unwrap_or_default();
        let is_set = words
            .iter()
            .any(|word| word.as_encoded_bytes().starts_with(prefix.as_bytes()));
        is_set.then_some(env::CLAUDE_CODE_OAUTH_TOKEN)
    };
    let helper = || has_key_helper(call).then_some("apiKeyHelper");
    named.or_else(stripped).or_else(helper).map(str::to_owned)
}

/// Whether the user's settings name a program that gives API keys. Settings that
/// can't be read name none: the client itself ignores such a file.
fn has_key_helper(call: &Call) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        api_key_helper: Option<serde::de::IgnoredAny>,
    }
    let config = client_session::config_dir(call.payload.transcript_path.as_deref());
    let path = config.map(|config| config.join("settings.json"));
    let read = path.and_then(|path| transcript_file::read_tail(&path, SETTINGS_BYTES_MAX).ok());
    let settings = read.and_then(|(bytes, _)| {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        serde_json::from_slice::<Settings>(text).ok()
    });
    settings.is_some_and(|settings| settings.api_key_helper.is_some())
}

fn turn_began_at(call: &Call, lease: &Lease) -> Option<i64> {
    let prompt = lease.last_prompt.as_ref()?;
    (prompt.prompt_id.as_deref() == call.payload.prompt_id.as_deref()).then_some(prompt.at)
}

/// Whether the lease shows the failed turn under way: begun and not ended.
fn is_under_way(call: &Call, lease: &Lease) -> bool {
    turn_began_at(call, lease).is_some()
        && lease.last_stop_prompt_id.as_deref() != call.payload.prompt_id.as_deref()
}

/// The diagnosis, quickly: the failed line is often not on disk yet, and a wake
/// on a weekly wall has to come before the client's dialog.
///
/// The payload decides at once where the lease shows its turn under way and the
/// transcript does not say otherwise. A transcript that shows the conversation
/// ended or interrupted gets a moment to be wrong: then the failure is a helper's
/// (anthropics/claude-code#91419), or a person's own act.
fn diagnose(call: &Call, lease: &Lease) -> Diagnosis {
    let zone = zone::name();
    let transcript = call.payload.transcript_path.as_deref().map(Path::new);
    loop {
        let now = clock::now_ms();
        let waited = now - call.started >= FLUSH_MS;
        let read = transcript.map(|path| transcript_file::read_tail(path, WINDOW_BYTES));
        let (bytes, whole) = match read {
            Some(Ok(read)) => read,
            // Without a transcript the payload has to do, if its turn is known.
            Some(Err(_)) | None if is_under_way(call, lease) => (Vec::new(), true),
            Some(Err(_)) if !waited => {
                clock::sleep_ms(20);
                continue;
            }
            Some(Err(why)) => return unknown(format!("the transcript can't be read: {why}")),
            None => return unknown("the payload names no transcript".into()),
        };
        let tail = Tail::from_bytes(&bytes, whole);
        let evidence = Evidence {
            payload: Some(call.payload),
            tail: &tail,
            observed: None,
            now_ms: now,
            zone: zone.as_deref(),
        };
        let settled = match tail.turn() {
            Turn::Failed(_) | Turn::CompactionFailed(_) => true,
            Turn::Ended | Turn::Interrupted | Turn::AsksPerson => false,
            _ => is_under_way(call, lease),
        };
        if settled || waited {
            return diagnosis::diagnose(evidence);
        }
        clock::sleep_ms(20);
    }
}

/// The world with the reset as the transcript has it: a sentence tells the minute,
/// and a wait by it could end before the window opens.
pub(crate) fn with_exact_reset(call: &Call, world: &World) -> World {
    let mut exact = world.clone();
    let Some(path) = call.payload.transcript_path.as_deref().map(Path::new) else {
        return exact;
    };
    while clock::now_ms() - call.started < 2 * FLUSH_MS {
        if let Ok((bytes, whole)) = transcript_file::read_tail(path, WINDOW_BYTES) {
            let tail = Tail::from_bytes(&bytes, whole);
            if matches!(tail.turn(), Turn::Failed(_)) {
                let zone = zone::name();
                let evidence = Evidence {
                    payload: Some(call.payload),
                    tail: &tail,
                    observed: None,
                    now_ms: clock::now_ms(),
                    zone: zone.as_deref(),
                };
                let diagnosis = diagnosis::diagnose(evidence);
                if diagnosis.verdict == world.diagnosis.verdict {
                    exact.diagnosis = diagnosis;
                }
                break;
            }
        }
        clock::sleep_ms(20);
    }
    exact
}

fn unknown(why: String) -> Diagnosis {
    Diagnosis {
        verdict: Verdict::Unknown,
        why,
        ..Diagnosis::default()
    }
}

/// A sub-agent's wall, which its session's verdict passes over: the account is
/// spent all the same.
pub(crate) fn subagent_wall(payload: &Payload, now: i64) -> Option<Diagnosis> {
    let own = Payload {
        agent_id: None,
        ..payload.clone()
    };
    let diagnosis = diagnosis::diagnose_payload(&own, now, zone::name().as_deref());
    (diagnosis.verdict == Verdict::Walled).then_some(diagnosis)
}
