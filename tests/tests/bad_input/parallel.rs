//! Many runs at once, and runs that are killed in the middle.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Child, Output};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::stage::{Hook, PROMPT, SID, Stage, contents, of_session};

fn start(stage: &Stage, payload: &Value) -> Child {
    let mut child = stage.command().spawn().unwrap();
    let bytes = format!("{payload}\n");
    // A hook that was killed reads nothing.
    child.stdin.take().unwrap().write_all(bytes.as_bytes()).ok();
    child
}

/// Starts them all before it waits for the first.
fn run_all(stage: &Stage, payloads: &[Value]) -> Vec<Output> {
    let children: Vec<Child> = payloads.iter().map(|payload| start(stage, payload)).collect();
    children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect()
}

fn with(stage: &Stage, field: &str, value: Value) -> Value {
    let mut payload = stage.payload.clone();
    payload[field] = value;
    payload
}

fn lease_lines(stage: &Stage) -> Vec<Value> {
    let text = fs_err::read_to_string(stage.root().join(of_session("lease.jsonl"))).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn twenty_runs_for_one_failure_act_once() {
    let stage = Stage::new(Hook::Walled);
    let outputs = run_all(&stage, &vec![stage.payload.clone(); 20]);
    let codes: Vec<_> = outputs
        .iter()
        .map(|output| output.status.code().unwrap())
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == 2).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 19, "{codes:?}");
    let flips = fs_err::read_to_string(stage.root().join("flips.jsonl")).unwrap();
    assert_eq!(flips.lines().count(), 1, "{flips}");
    let episode = stage.root().join(of_session(&format!("episodes/{PROMPT}")));
    let episode: Value = serde_json::from_slice(&fs_err::read(episode).unwrap()).unwrap();
    assert_eq!(episode["outcome"], "woken");
}

#[test]
fn fifty_appends_lose_nothing() {
    let mut stage = Stage::new(Hook::Lease);
    stage.set("hook_event_name", json!("UserPromptSubmit"));
    stage.set("prompt", json!("go on"));
    let ids: Vec<String> = (0..50).map(|n| format!("p{n}")).collect();
    let payloads: Vec<Value> = ids
        .iter()
        .map(|id| with(&stage, "prompt_id", json!(id)))
        .collect();
    for output in run_all(&stage, &payloads) {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let lines = lease_lines(&stage);
    assert_eq!(lines.len(), 52);
    for id in ids {
        assert_eq!(
            lines.iter().filter(|line| line["prompt_id"] == *id).count(),
            1,
            "{id}"
        );
    }
}

#[test]
fn two_gates_hold_once() {
    for _ in 0..10 {
        let stage = Stage::new(Hook::Gate);
        let outputs = run_all(&stage, &vec![stage.payload.clone(); 2]);
        let held = outputs.iter().filter(|output| !output.stdout.is_empty()).count();
        assert_eq!(held, 1, "{outputs:?}");
    }
}

/// A small generator, so that a failing round can be run again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Starts the hook and kills it at a moment within its usual run.
fn start_and_kill(stage: &Stage, payload: &Value, dice: &mut Dice) {
    let mut child = start(stage, payload);
    std::thread::sleep(Duration::from_micros(dice.below(8_000)));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Each file is whole: JSON objects, and lines that are.
fn assert_all_parses(stage: &Stage, round: u64) {
    for (path, bytes) in contents(&stage.root()) {
        let name = path
            .strip_prefix(stage.root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let is_value =
            |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value.is_object());
        let is_whole = match path.extension().and_then(|end| end.to_str()) {
            Some("jsonl") => bytes
                .split(|byte| *byte == b'\n')
                .all(|line| line.is_empty() || is_value(line)),
            Some("json") => is_value(&bytes),
            None if name.contains("/episodes/") => is_value(&bytes),
            // Logs, locks, and files that were being written.
            _ => true,
        };
        assert!(
            is_whole,
            "round {round}: {name}: {}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

#[test]
fn walled_heal_killed_at_any_moment_leaves_a_whole_state() {
    let stage = Stage::new(Hook::Walled);
    let mut dice = Dice(11);
    let lease = stage.root().join(of_session("lease.jsonl"));
    // Each round begins with an account to go to, and with the turn under way.
    let prepare = |id: &str| {
        stage.put("pool.json", r#"{"format":1,"order":["a","b"],"accounts":{}}"#);
        fs_err::remove_file(stage.root().join("flips.jsonl")).ok();
        fs_err::remove_file(stage.root().join(of_session("wall.json"))).ok();
        let line =
            json!({"format":1,"at":shared::edge::clock::now_ms() - 1000,"event":"prompt","prompt_id":id});
        let mut file = fs_err::OpenOptions::new().append(true).open(&lease).unwrap();
        writeln!(file, "{line}").unwrap();
    };
    let mut moved = 0;
    for round in 0..60 {
        let id = format!("killed-{round}");
        let before = fs_err::read_link(stage.root().join("shards/default")).unwrap();
        prepare(&id);
        start_and_kill(&stage, &with(&stage, "prompt_id", json!(id)), &mut dice);
        assert_all_parses(&stage, round);
        let link = fs_err::read_link(stage.root().join("shards/default")).unwrap();
        let link = link.to_str().unwrap();
        assert!(
            ["../accounts/a", "../accounts/b"].contains(&link),
            "round {round}: {link}"
        );
        moved += usize::from(before.to_str() != Some(link));
        // The client's own locks count as stale after 60 s, for it and for us.
        for account in ["a", "b"] {
            for name in shared::edge::client_lock::NAMES {
                let lock = stage.root().join("accounts").join(account).join(name);
                if let Ok(lock) = fs_err::File::open(lock) {
                    let old = SystemTime::now() - Duration::from_secs(61);
                    lock.file().set_modified(old).unwrap();
                }
            }
        }
    }
    assert!(
        (1..60).contains(&moved),
        "moments before and after the flip: {moved}"
    );
    let id = "after-all";
    prepare(id);
    let output = run_all(&stage, &[with(&stage, "prompt_id", json!(id))]).remove(0);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn session_lease_killed_at_any_moment_leaves_a_whole_state() {
    let stage = Stage::new(Hook::Lease);
    let mut dice = Dice(12);
    for round in 0..60 {
        let event = ["SessionStart", "Stop", "SessionEnd"][usize::try_from(round % 3).unwrap()];
        start_and_kill(&stage, &with(&stage, "hook_event_name", json!(event)), &mut dice);
        assert_all_parses(&stage, round);
    }
    let lines = lease_lines(&stage);
    assert!(lines.len() > 2, "some runs got that far");
    let output = run_all(&stage, &[with(&stage, "hook_event_name", json!("Stop"))]).remove(0);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(lease_lines(&stage).len(), lines.len() + 1);
}

#[test]
fn a_link_in_the_place_of_a_temporary_file_is_not_followed() {
    let mut stage = Stage::new(Hook::Lease);
    // Names of temporary files can be guessed: by pid. Whichever it is here, the
    // folder's target keeps its bytes.
    let outside = stage.outside().join("theirs");
    fs_err::write(&outside, "theirs").unwrap();
    fs_err::create_dir(stage.root().join("hosts")).unwrap();
    let pid = stage.client_pid();
    for guess in 0..3000 {
        let link = format!("hosts/{pid}.json.{}.tmp", u64::from(pid) + guess);
        symlink(&outside, stage.root().join(link)).unwrap();
    }
    stage.set("session_id", json!(SID));
    let output = run_all(&stage, &[stage.payload.clone()]).remove(0);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(fs_err::read(&outside).unwrap(), b"theirs");
}
