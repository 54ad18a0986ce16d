//! The interleaved wall-time comparison behind `tests/bench`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a tool for people at a terminal: it stops at the first surprise"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;
use tests::executables::executable;
use tests::walled_stage::WalledStage;

const SID: &str = "75a75ff2-40b5-445d-a60f-2558410a19fd";
const PYTHON: &str = "/usr/bin/python3";

/// What the synchronous hooks do, in Python: read the payload, look for the switch
/// and the goal, append a line.
const PYTHON_JOB: &str = "
import json, os, sys, time
root = sys.argv[1]
payload = json.load(sys.stdin)
if not os.path.exists(root + '/off') and not os.path.exists(root + '/goals/' + payload['session_id'] + '.json'):
    os.makedirs(root + '/py', mode=0o700, exist_ok=True)
    with open(root + '/py/lease.jsonl', 'a') as lease:
        lease.write(json.dumps({'format': 1, 'at': int(time.time() * 1000), 'event': 'stop'}) + '\\n')
";

struct Case {
    name: &'static str,
    words: Vec<PathBuf>,
    payload: String,
    took_us: Vec<u128>,
}

fn payload(event: &str) -> String {
    let payload = json!({
        "session_id": SID, "transcript_path": "/nonexistent/transcript.jsonl", "cwd": "/home/u/proj",
        "prompt_id": "158a2d05-81a4-43ae-a091-1909e1bd1310", "hook_event_name": event,
        "permission_mode": "default", "stop_hook_active": false, "prompt": "go on", "error": "rate_limit",
        "last_assistant_message": "All of it is done. ".repeat(26), "background_tasks": [], "session_crons": [],
    });
    format!("{payload}\n")
}

fn run(case: &mut Case, home: &Path) {
    let mut command = Command::new(case.words.first().unwrap());
    command
        .args(case.words.iter().skip(1))
        .env_clear()
        .env("HOME", home);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(case.payload.as_bytes())
        .ok();
    child.wait().unwrap();
    case.took_us.push(began.elapsed().as_micros());
}

fn median(values: &mut [u128]) -> u128 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(200);
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join(".rungs");
    let hook = |name: &'static str, event: &str, label: &'static str| Case {
        name: label,
        words: vec![executable(name), "--root".into(), root.clone()],
        payload: payload(event),
        took_us: Vec::new(),
    };
    let mut cases = vec![
        Case {
            name: "/bin/true",
            words: vec!["/bin/true".into()],
            payload: String::new(),
            took_us: Vec::new(),
        },
        hook("drive-gate", "Stop", "drive-gate, no goal"),
        hook("session-lease", "Stop", "session-lease, stop"),
        hook("session-lease", "UserPromptSubmit", "session-lease, prompt"),
        hook("wedge-heal", "StopFailure", "wedge-heal, not its own"),
    ];
    if Path::new(PYTHON).is_file() {
        let job = home.path().join("job.py");
        std::fs::write(&job, PYTHON_JOB).unwrap();
        let words = vec![PYTHON.into(), job, root.clone()];
        cases.push(Case {
            name: "python3, a stop's job",
            words,
            payload: payload("Stop"),
            took_us: Vec::new(),
        });
    }
    let mut seed: usize = 1;
    for _ in 0..rounds {
        // A new order each round, so that no case always runs after the same one.
        for last in (1..cases.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            cases.swap(last, (seed >> 33) % (last + 1));
        }
        for case in &mut cases {
            run(case, home.path());
        }
    }
    let stage = WalledStage::new(500 << 20);
    let mut wakes: Vec<u128> = (0..rounds.min(30))
        .map(|_| {
            stage.set_back();
            let began = Instant::now();
            stage.run(&[]);
            began.elapsed().as_micros()
        })
        .collect();

    let of = |cases: &mut Vec<Case>, name: &str| {
        let case = cases.iter_mut().find(|case| case.name == name);
        case.map(|case| median(&mut case.took_us))
    };
    let reference = of(&mut cases, "/bin/true").unwrap();
    let python = of(&mut cases, "python3, a stop's job");
    cases.sort_by_key(|case| case.name);
    println!("{rounds} rounds, medians; wall time with fork, exec and the payload's pipe");
    println!("{:<26} {:>9} {:>11} {:>9}", "", "µs", "/bin/true", "python3");
    let row = |name: &str, took: u128| {
        let by_python = python.map_or_else(
            || "-".into(),
            |python| format!("1/{:.0}", python as f64 / took as f64),
        );
        println!(
            "{name:<26} {took:>9} {:>11.2} {by_python:>9}",
            took as f64 / reference as f64
        );
    };
    for case in &mut cases {
        row(case.name, median(&mut case.took_us));
    }
    row("walled-heal, a wake", median(&mut wakes));
}
