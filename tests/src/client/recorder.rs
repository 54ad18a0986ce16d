//! A hook that keeps what the client hands it, and then does as told.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::home::Home;
use super::wait::wait_until;
use crate::files::{read_json, write_executable};

/// The recorder, installed in a home.
#[derive(Debug)]
pub struct Recorder {
    program: PathBuf,
    folder: PathBuf,
}

/// One run of the recorder.
#[derive(Debug, Clone)]
pub struct HookRecord {
    /// The event's name.
    pub event: String,
    /// The whole payload.
    pub payload: Value,
    /// `CLAUDE_PID` as the hook saw it.
    pub client_pid: String,
    /// When the payload was written.
    pub at: SystemTime,
}

/// Arguments: folder, seconds to sleep, exit code, text for standard error.
const PROGRAM: &str = r#"#!/bin/sh
file=$(mktemp "$1/XXXXXXXX") || exit 0
cat >"$file"
printf '%s' "$CLAUDE_PID" >"$file.pid"
mv "$file" "$file.json"
sleep "${2:-0}"
printf '%s' "$4" >&2
exit "${3:-0}"
"#;

impl Recorder {
    /// Puts the program into the home; the settings still have to name it.
    pub fn install(home: &Home) -> Recorder {
        let recorder = Recorder {
            program: home.path().join("bin/record-hook"),
            folder: home.path().join("hook-records"),
        };
        fs_err::create_dir_all(&recorder.folder).unwrap();
        write_executable(&recorder.program, PROGRAM);
        recorder
    }

    /// The `hooks` value of settings that records these events.
    pub fn hooks(&self, events: &[&str]) -> Value {
        let entries = events
            .iter()
            .map(|&event| (event.to_owned(), json!([self.group(0.0, 0, "")])));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// A hook group that records, sleeps, then exits with this code and text.
    pub fn group(&self, sleep_s: f64, exit_code: i32, stderr: &str) -> Value {
        json!({ "hooks": [ {
            "type": "command", "command": self.program, "timeout": 600,
            "args": [self.folder, sleep_s.to_string(), exit_code.to_string(), stderr]
        } ] })
    }

    /// The same as an asynchronous hook whose exit code 2 wakes the session.
    pub fn waking_group(&self, sleep_s: f64, exit_code: i32, stderr: &str) -> Value {
        let mut group = self.group(sleep_s, exit_code, stderr);
        group["hooks"][0]["asyncRewake"] = json!(true);
        group
    }

    /// All runs so far, oldest first.
    pub fn records(&self) -> Vec<HookRecord> {
        let paths = fs_err::read_dir(&self.folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let records = paths.filter_map(|path| {
            let payload = read_json(&path)?;
            let pid = fs_err::read_to_string(path.with_extension("pid")).ok()?;
            Some(HookRecord {
                event: payload.get("hook_event_name")?.as_str()?.to_owned(),
                client_pid: pid,
                at: fs_err::metadata(&path).ok()?.modified().ok()?,
                payload,
            })
        });
        let mut records: Vec<HookRecord> = records.collect();
        records.sort_by_key(|record| record.at);
        records
    }

    /// The runs of one event.
    pub fn of(&self, event: &str) -> Vec<HookRecord> {
        let mut records = self.records();
        records.retain(|record| record.event == event);
        records
    }

    /// Waits for so many runs of an event.
    pub fn wait(&self, event: &str, count: usize, patience: Duration) -> Vec<HookRecord> {
        let came = wait_until(patience, || self.of(event).len() >= count);
        let seen: Vec<String> = self.records().into_iter().map(|record| record.event).collect();
        assert!(came, "not {count} x {event} within {patience:?}; seen: {seen:?}");
        self.of(event)
    }
}
