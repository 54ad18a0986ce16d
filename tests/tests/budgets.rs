//! What a person's turn pays for the synchronous hooks, counted and not timed:
//! user instructions by callgrind and system calls by strace repeat within one
//! per cent on a busy machine, wall time does not.
//!
//! Counted on the release build, with an environment as large as the client's.
//! Where a tool or the build is missing the tests say so and count as skipped;
//! with `CI` set that is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::env;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const SID: &str = "75a75ff2-40b5-445d-a60f-2558410a19fd";

/// The most that a hook run may cost.
#[derive(Clone, Copy)]
struct Limit {
    instructions: u64,
    calls: u64,
}

const TURN: Limit = Limit {
    instructions: 150_000,
    calls: 40,
};

/// A start records the host process: it reads `/proc`.
const START: Limit = Limit {
    instructions: 150_000,
    calls: 90,
};

/// What a run cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    instructions: u64,
    calls: u64,
}

/// The release build of a hook and both tools, or why they are not there.
fn release(name: &str) -> Result<PathBuf, String> {
    for (tool, option) in [("valgrind", "--version"), ("strace", "-V")] {
        let found = Command::new(tool)
            .arg(option)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.map_err(|why| format!("{tool} can't be run ({why})"))?;
    }
    let folder = env::var_os("RUNGS_BIN_DIR").map_or_else(
        // The running test is target/<host>/<profile>/deps/<test>.
        || {
            env::current_exe()
                .unwrap()
                .ancestors()
                .nth(3)
                .unwrap()
                .join("release")
        },
        PathBuf::from,
    );
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!(
            "{} has not been built: cargo build --release -p {name}",
            path.display()
        ))
    }
}

/// A home with a lease and a transcript of a given size.
struct Home {
    folder: TempDir,
    transcript: PathBuf,
}

impl Home {
    fn new(transcript_bytes: u64, lease: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join(".claude/projects/-home-u-proj");
        fs_err::create_dir_all(&project).unwrap();
        let transcript = project.join(format!("{SID}.jsonl"));
        let line =
            b"\n{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\n";
        let mut file = fs_err::File::create(&transcript).unwrap();
        // A hole in front: large for whoever reads it, nothing on the disk.
        file.seek(SeekFrom::Start(
            transcript_bytes.saturating_sub(line.len() as u64),
        ))
        .unwrap();
        file.write_all(line).unwrap();
        let home = Self { folder, transcript };
        for event in ["SessionStart", "UserPromptSubmit"] {
            assert!(home.run(&[lease], &home.payload(event)).status.success());
        }
        home
    }

    /// A payload of about 1 KB.
    fn payload(&self, event: &str) -> Vec<u8> {
        let words = "All of it is done. ".repeat(26);
        let mut payload = json!({
            "session_id": SID,
            "transcript_path": self.transcript,
            "cwd": "/home/u/proj",
            "hook_event_name": event,
        });
        let more = match event {
            "SessionStart" => json!({"source": "startup", "model": words}),
            "UserPromptSubmit" => json!({"prompt_id": "158a2d05-81a4-43ae-a091-1909e1bd1310",
                "permission_mode": "bypassPermissions", "prompt": words}),
            _ => json!({"prompt_id": "158a2d05-81a4-43ae-a091-1909e1bd1310",
                "permission_mode": "bypassPermissions", "effort": {"level": "medium"},
                "stop_hook_active": false, "last_assistant_message": words,
                "background_tasks": [], "session_crons": []}),
        };
        let Value::Object(more) = more else { unreachable!() };
        payload.as_object_mut().unwrap().extend(more);
        let text = format!("{payload}\n");
        assert!((600..1100).contains(&text.len()), "{}", text.len());
        text.into_bytes()
    }

    /// Runs a command line with the hook's environment and payload.
    fn run(&self, words: &[&Path], payload: &[u8]) -> Output {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("HOME", self.folder.path());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        // The start code walks the environment; the client's has about 50 words.
        for n in 0..48 {
            command.env(format!("CLAUDE_CODE_FILLER_{n:02}"), "/home/u/.local/share/value");
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload).unwrap();
        child.wait_with_output().unwrap()
    }

    fn cost(&self, hook: &Path, event: &str) -> Cost {
        let payload = self.payload(event);
        let profile = self.folder.path().join("profile");
        let option = PathBuf::from(format!("--callgrind-out-file={}", profile.display()));
        let words = [
            Path::new("valgrind"),
            Path::new("--tool=callgrind"),
            &option,
            hook,
        ];
        let counted = self.run(&words, &payload);
        assert!(
            counted.status.success() && counted.stdout.is_empty(),
            "{counted:?}"
        );
        let said = String::from_utf8_lossy(&counted.stderr);
        let (_, count) = said.split_once("Collected : ").unwrap();
        let instructions = count.split_whitespace().next().unwrap().parse().unwrap();

        let trace = self.folder.path().join("trace");
        let words = [
            Path::new("strace"),
            Path::new("-f"),
            Path::new("-o"),
            &trace,
            hook,
        ];
        let traced = self.run(&words, &payload);
        assert!(traced.status.success() && traced.stdout.is_empty(), "{traced:?}");
        let trace = fs_err::read_to_string(trace).unwrap();
        // `+++` and `---` lines tell of exits and signals, `resumed` of a call
        // that was counted where it began.
        let is_call = |line: &&str| {
            line.contains('(') && !line.contains("+++") && !line.contains("---") && !line.contains("resumed>")
        };
        let calls = trace.lines().filter(is_call).count() as u64;
        assert!(trace.contains("exit_group(0)"), "{trace}");
        assert!(
            !trace.contains(self.transcript.to_str().unwrap()),
            "the transcript was touched:\n{trace}"
        );
        Cost { instructions, calls }
    }
}

fn keeps(name: &str, event: &str, limit: Limit) {
    let hooks = release(name).and_then(|hook| Ok((hook, release("session-lease")?)));
    let (hook, lease) = match hooks {
        Ok(hooks) => hooks,
        Err(why) => {
            assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{why}");
            eprintln!("SKIPPED: the cost of {name} on {event} was not counted: {why}");
            return;
        }
    };
    let small = Home::new(1000, &lease).cost(&hook, event);
    let large = Home::new(500 << 20, &lease).cost(&hook, event);
    eprintln!(
        "{name} {event}: {} instructions, {} system calls; with a transcript of 500 MB {}, {}",
        small.instructions, small.calls, large.instructions, large.calls
    );
    for cost in [small, large] {
        assert!(
            cost.instructions <= limit.instructions,
            "{name} {event}: {cost:?}"
        );
        assert!(cost.calls <= limit.calls, "{name} {event}: {cost:?}");
    }
    let apart = small.instructions.abs_diff(large.instructions);
    assert!(
        apart * 100 <= small.instructions,
        "{name} {event}: {small:?} {large:?}"
    );
    assert_eq!(small.calls, large.calls, "{name} {event}");
}

#[test]
fn a_stop_without_a_goal_is_cheap() {
    keeps("drive-gate", "Stop", TURN);
}

#[test]
fn the_lease_of_a_stop_is_cheap() {
    keeps("session-lease", "Stop", TURN);
}

#[test]
fn the_lease_of_a_prompt_is_cheap() {
    keeps("session-lease", "UserPromptSubmit", TURN);
}

#[test]
fn the_lease_of_a_start_is_cheap() {
    keeps("session-lease", "SessionStart", START);
}
