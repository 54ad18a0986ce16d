//! `rungs diagnose` as a program: what it prints, and how it refuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

const WALL: &str = concat!(
    r#"{"type":"user","sessionId":"s","timestamp":"2026-09-01T18:59:00.000Z","message":{"role":"user","content":"go"}}"#,
    "\n",
    r#"{"type":"assistant","sessionId":"s","timestamp":"2026-09-01T18:59:26.000Z","isApiErrorMessage":true,"#,
    r#""error":"rate_limit","message":{"model":"<synthetic>","stop_reason":"stop_sequence","#,
    r#""content":[{"type":"text","text":"You've hit your session limit · resets 9:20pm"}]}}"#,
    "\n",
);

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs_err::write(&path, content).unwrap();
        path
    }

    fn rungs(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rungs"));
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .timeout(Duration::from_secs(20))
            .arg("diagnose");
        command
    }

    fn diagnose(&self, transcript: &Path) -> Command {
        let mut command = self.rungs();
        command
            .arg("--transcript")
            .arg(transcript)
            .args(["--now", "2026-09-01T19:00:00Z"]);
        command
    }

    fn json(command: &mut Command) -> Value {
        let output = command.arg("--json").assert().success().get_output().clone();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Runs to a failure, and gives back its one line.
    fn refusal(command: &mut Command, code: i32) -> String {
        let output = command.assert().code(code).get_output().clone();
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(code == 2 || text.lines().count() == 1, "{text}");
        text
    }
}

#[test]
fn one_object_with_the_stable_fields() {
    let desk = Desk::new();
    let answer = Desk::json(
        desk.diagnose(&desk.file("t.jsonl", WALL))
            .args(["--zone", "Asia/Kolkata"]),
    );
    assert_eq!(answer["verdict"], "walled");
    assert_eq!(answer["window"], "five_hour");
    assert_eq!(answer["resets_at"], "2026-09-02T15:50:00Z");
    assert_eq!(answer["heal"], "move-account");
    assert_eq!(answer["kind"], "five-hour-wall");
    assert!(answer["why"].as_str().is_some_and(|why| !why.is_empty()));
}

#[test]
fn absent_fields_are_null() {
    let desk = Desk::new();
    let answer = Desk::json(&mut desk.diagnose(&desk.file("t.jsonl", "")));
    assert_eq!(answer["verdict"], "unknown");
    assert_eq!(answer["heal"], "none");
    assert_eq!(answer["window"], Value::Null);
    assert_eq!(answer["resets_at"], Value::Null);
}

#[test]
fn the_payload_and_the_readings_count() {
    let desk = Desk::new();
    let wall = desk.file("t.jsonl", WALL);
    let payload = desk.file(
        "p.json",
        r#"{"session_id":"s","hook_event_name":"StopFailure","agent_id":"a"}"#,
    );
    let answer = Desk::json(desk.diagnose(&wall).arg("--payload").arg(payload));
    assert_eq!(answer["verdict"], "not-for-us");

    let readings = desk.file("o.json", r#"{"tz":"UTC","not_known_yet":1}"#);
    let answer = Desk::json(desk.diagnose(&wall).arg("--observed").arg(readings));
    assert_eq!(answer["resets_at"], "2026-09-01T21:20:00Z");

    let none = desk.file("null.json", "null\n");
    let answer = Desk::json(
        desk.diagnose(&wall)
            .arg("--payload")
            .arg(&none)
            .arg("--observed")
            .arg(&none),
    );
    assert_eq!(answer["verdict"], "walled");
}

#[test]
fn without_json_it_is_for_people() {
    let desk = Desk::new();
    let output = desk
        .diagnose(&desk.file("t.jsonl", WALL))
        .assert()
        .success()
        .get_output()
        .clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("walled (five-hour-wall)\n"), "{text}");
    assert!(text.contains("resets  2026-09-01T21:20:00Z\n"), "{text}");
}

#[test]
fn input_that_cannot_be_read_is_one_line_and_exit_1() {
    let desk = Desk::new();
    let folder = desk.folder.path().to_owned();
    let fifo = folder.join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for bad in [
        &folder,
        &fifo,
        &folder.join("missing"),
        &PathBuf::from("/dev/null"),
    ] {
        let text = Desk::refusal(desk.diagnose(bad).arg("--json"), 1);
        assert!(text.contains(bad.to_str().unwrap()), "{text}");
    }
    let wall = desk.file("t.jsonl", WALL);
    for bad in ["", "[]", "{", "{\"session_id\":1}", "{\"process_alive\":\"yes\"}"] {
        let path = desk.file("bad.json", bad);
        if bad != "{\"process_alive\":\"yes\"}" {
            let text = Desk::refusal(desk.diagnose(&wall).arg("--payload").arg(&path), 1);
            assert!(text.contains("bad.json"), "{text}");
        }
        if bad != "{\"session_id\":1}" {
            let text = Desk::refusal(desk.diagnose(&wall).arg("--observed").arg(&path), 1);
            assert!(text.contains("bad.json"), "{text}");
        }
    }
}

#[test]
fn misuse_is_exit_2() {
    let desk = Desk::new();
    let wall = desk.file("t.jsonl", WALL);
    Desk::refusal(&mut desk.rungs(), 2);
    Desk::refusal(desk.diagnose(&wall).args(["--zone", "Mars/Olympus"]), 2);
    Desk::refusal(
        desk.rungs()
            .arg("--transcript")
            .arg(&wall)
            .args(["--now", "yesterday"]),
        2,
    );
    Desk::refusal(desk.diagnose(&wall).arg("--no-such-option"), 2);
}

#[test]
fn no_bytes_make_it_fail() {
    let desk = Desk::new();
    let path = desk.folder.path().join("t.jsonl");
    for bytes in [
        &b"\xff\xfe\x00\n\n{"[..],
        b"[[[[[[[[[[",
        &[0; 4096],
        b"{\"type\":\"user\"}\r\n\xc3",
    ] {
        fs_err::write(&path, bytes).unwrap();
        assert_eq!(Desk::json(&mut desk.diagnose(&path))["heal"], "none");
    }
    // Deeper than any reader goes.
    fs_err::write(&path, format!("{{\"message\":{}", "[".repeat(1 << 20))).unwrap();
    assert_eq!(Desk::json(&mut desk.diagnose(&path))["heal"], "none");
}
