//! session-lease keeps its own house: a large lease is begun anew, folders of
//! sessions long over go.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::format_collect,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tempfile::TempDir;
use tests::executables::executable;
use tests::files::read_json_lines;

const SID: &str = "75a75ff2-40b5-445d-a60f-2558410a19fd";
const DAY_MS: i64 = 24 * 3_600_000;

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(".rungs").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    /// Makes a file or folder look as if last written so many days ago.
    fn age(&self, name: &str, days: i64) {
        let ago = Duration::from_millis(u64::try_from(days * DAY_MS).unwrap());
        let file = fs_err::File::open(self.file(name)).unwrap();
        file.file().set_modified(SystemTime::now() - ago).unwrap();
    }

    fn start(&self, event: &str, prompt_id: &str) -> Child {
        let mut child = Command::new(executable("session-lease"))
            .env_clear()
            .env("HOME", self.0.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let payload = json!({"session_id": SID, "hook_event_name": event, "prompt_id": prompt_id,
            "source": "startup", "background_tasks": [], "session_crons": []});
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(payload.to_string().as_bytes()).unwrap();
        child
    }

    fn run(&self, event: &str) {
        assert!(self.start(event, "p").wait().unwrap().success());
    }

    /// A session of a process that is gone, with its lines that many days ago.
    fn session(&self, sid: &str, days: i64, events: &[&str]) {
        self.session_of(sid, days, events, i32::MAX);
    }

    fn session_of(&self, sid: &str, days: i64, events: &[&str], pid: i32) {
        let at = now_ms() - days * DAY_MS;
        let own = std::process::id().cast_signed();
        let start = shared::edge::proc::ProcessId::of(pid).map_or(1, |process| process.start);
        let host = json!({"pid": pid, "start": start, "machine": shared::edge::proc::machine_id(),
            "pid_namespace": shared::edge::proc::pid_namespace(own)});
        let line = |event: &&str| {
            let mut line = json!({"format": 1, "at": at, "event": event});
            if *event == "start" {
                line["host"] = host.clone();
            }
            format!("{line}\n")
        };
        let lease = format!("session/{sid}/lease.jsonl");
        self.put(&lease, &events.iter().map(line).collect::<String>());
        self.put(&format!("session/{sid}/episodes/p"), "{}");
        self.age(&lease, days);
    }

    fn has(&self, sid: &str) -> bool {
        self.file(&format!("session/{sid}")).exists()
    }
}

fn now_ms() -> i64 {
    shared::edge::clock::now_ms()
}

/// A lease just over its bound, with one start at the front.
fn large_lease() -> String {
    let mut text = json!({"format":1,"at":1,"event":"start","host":{"pid":7,"start":70}}).to_string();
    let line = format!(
        "\n{}",
        json!({"format":1,"at":2,"event":"notify","what":"x".repeat(200)})
    );
    while text.len() <= 768 << 10 {
        text += &line;
    }
    text + "\n"
}

#[test]
fn a_large_lease_is_begun_anew_at_a_stop() {
    let home = Home::new();
    let lease = format!("session/{SID}/lease.jsonl");
    home.put(&lease, &large_lease());
    let size = |home: &Home| fs_err::metadata(home.file(&lease)).unwrap().len();
    let before = size(&home);
    home.run("Notification");
    assert!(size(&home) > before, "only at a stop");
    home.run("Stop");
    assert!(size(&home) < 32 << 10, "{}", size(&home));
    let lines = read_json_lines(&home.file(&lease));
    assert_eq!(lines[0]["host"]["pid"], 7);
    assert_eq!(lines.last().unwrap()["event"], "stop");
    home.run("Stop");
    assert_eq!(read_json_lines(&home.file(&lease)).len(), lines.len() + 1);
}

#[test]
fn stops_at_once_lose_nothing_when_the_lease_is_begun_anew() {
    let home = Home::new();
    let lease = format!("session/{SID}/lease.jsonl");
    home.put(&lease, &large_lease());
    let ids: Vec<String> = (0..30).map(|n| format!("stop-{n}")).collect();
    let children: Vec<Child> = ids.iter().map(|id| home.start("Stop", id)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = read_json_lines(&home.file(&lease));
    assert!(lines.len() < 200);
    for id in ids {
        assert_eq!(
            lines.iter().filter(|line| line["prompt_id"] == *id).count(),
            1,
            "{id}"
        );
    }
}

#[test]
fn folders_of_sessions_long_over_go() {
    let home = Home::new();
    home.session("ended", 31, &["start", "stop", "end"]);
    home.session("ended-lately", 29, &["start", "end"]);
    home.session("killed", 31, &["start", "prompt"]);
    home.session_of(
        "running",
        31,
        &["start", "stop"],
        std::process::id().cast_signed(),
    );
    home.session("hostless", 31, &["prompt"]);
    home.session("unread", 31, &["start", "end"]);
    home.put("signals/unread.wedge-heal.json", "{}");
    home.session("read", 31, &["start", "end"]);
    home.put("signals/read.wedge-heal.json", "{}");
    home.put("signals/read.wedge-heal.json.seen", "");
    // Nothing but a log, and a line that was written only lately.
    home.put("session/log-only/debug.log", "x");
    home.age("session/log-only", 31);
    home.session("touched", 31, &["start", "end"]);
    home.age("session/touched/lease.jsonl", 1);
    let outside = home.0.path().join("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("lease.jsonl"), "theirs").unwrap();
    std::os::unix::fs::symlink(&outside, home.file("session/linked")).unwrap();

    home.run("SessionStart");
    let gone = ["ended", "killed", "read", "log-only"];
    let kept = [
        "ended-lately",
        "running",
        "hostless",
        "unread",
        "touched",
        "linked",
        SID,
    ];
    for sid in gone {
        assert!(!home.has(sid), "{sid} is there");
    }
    for sid in kept {
        assert!(home.has(sid), "{sid} is gone");
    }
    assert_eq!(fs_err::read(outside.join("lease.jsonl")).unwrap(), b"theirs");
    let log = fs_err::read_to_string(home.file(&format!("session/{SID}/debug.log"))).unwrap();
    assert!(log.contains("swept: 4 folders"), "{log}");
}

#[test]
fn sweeping_is_for_one_start_a_day_and_bounded() {
    let home = Home::new();
    let count = |home: &Home| fs_err::read_dir(home.file("session")).unwrap().count();
    for n in 0..70 {
        home.session(&format!("old-{n}"), 40, &["start", "end"]);
    }
    home.run("Stop");
    assert_eq!(count(&home), 71, "not at a stop");
    home.run("SessionStart");
    assert_eq!(count(&home), 21, "fifty at a time");
    home.run("SessionStart");
    assert_eq!(count(&home), 21, "not again on the same day");
    home.age("swept", 2);
    home.run("SessionStart");
    assert_eq!(count(&home), 1);
}

#[test]
fn notes_of_processes_that_are_gone_go() {
    let home = Home::new();
    let own = std::process::id();
    let start = shared::edge::proc::ProcessId::of(own.cast_signed())
        .unwrap()
        .start;
    let note = |start: u64| json!({"format":1,"start":start,"sid":"s"}).to_string();
    let notes: [(String, String, i64, bool); 5] = [
        (own.to_string(), note(start), 40, true),
        (i32::MAX.to_string(), note(1), 40, false),
        ((i32::MAX - 1).to_string(), note(1), 0, true),
        ((i32::MAX - 2).to_string(), "garbage".into(), 40, true),
        ("1".to_owned(), note(u64::MAX), 40, false),
    ];
    for (pid, note, days, _) in &notes {
        let name = format!("hosts/{pid}.json");
        home.put(&name, note);
        home.age(&name, *days);
    }
    home.run("SessionStart");
    for (pid, _, _, stays) in notes {
        let is_there = home.file(&format!("hosts/{pid}.json")).exists();
        assert_eq!(is_there, stays, "{pid}");
    }
}

#[test]
fn a_clock_set_back_does_not_stop_it_for_long() {
    let home = Home::new();
    home.session("ended", 31, &["start", "end"]);
    home.put("swept", "");
    let file = fs_err::File::options()
        .write(true)
        .open(home.file("swept"))
        .unwrap();
    let ahead = SystemTime::now() + Duration::from_hours(90 * 24);
    file.file().set_modified(ahead).unwrap();
    home.run("SessionStart");
    assert!(!home.has("ended"));
}
