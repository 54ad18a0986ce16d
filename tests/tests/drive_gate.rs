//! drive-gate and `rungs goal` as executables, in a home of their own (rules G1
//! to G7).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::executables::executable;

const SID: &str = "75a75ff2-40b5-445d-a60f-2558410a19fd";
const OTHER: &str = "11111111-40b5-445d-a60f-2558410a19fd";

/// A home with nothing in it but what a test puts there.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home whose session has an open goal and a person's prompt `p1`.
    fn with_goal() -> Self {
        let home = Self::new();
        home.goal(&["set", "ship it"]);
        home.prompt("p1", "please ship it");
        home
    }

    fn root(&self) -> PathBuf {
        self.0.path().join(".rungs")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&fs_err::read(self.file(name)).unwrap()).unwrap()
    }

    fn log(&self) -> String {
        fs_err::read_to_string(self.file(&format!("session/{SID}/debug.log"))).unwrap_or_default()
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(executable(name));
        command
            .env_clear()
            .env("HOME", self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `rungs goal` inside the session.
    fn try_goal(&self, words: &[&str]) -> Output {
        let mut command = self.command("rungs");
        command.env("CLAUDE_CODE_SESSION_ID", SID).arg("goal").args(words);
        command.output().unwrap()
    }

    fn goal(&self, words: &[&str]) -> String {
        let output = self.try_goal(words);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that a failing `rungs goal` says.
    fn goal_error(&self, words: &[&str]) -> String {
        error_of(&self.try_goal(words))
    }

    /// session-lease sees a prompt.
    fn prompt(&self, prompt_id: &str, text: &str) {
        let payload = json!({"session_id": SID, "hook_event_name": "UserPromptSubmit",
            "prompt_id": prompt_id, "prompt": text});
        let output = run(self.command("session-lease"), &payload);
        assert!(output.status.success(), "{output:?}");
    }

    /// drive-gate sees a stop; what it says.
    fn stop(&self, payload: &Value) -> Said {
        Said::of(&run(self.command("drive-gate"), payload))
    }
}

fn start(mut command: Command, payload: &Value) -> Child {
    let mut child = command.spawn().unwrap();
    let bytes = format!("{payload}\n");
    // A gate that is switched off ends without reading.
    child.stdin.take().unwrap().write_all(bytes.as_bytes()).ok();
    child
}

fn run(command: Command, payload: &Value) -> Output {
    start(command, payload).wait_with_output().unwrap()
}

fn error_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stdout, b"");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// What the gate said.
#[derive(Debug, PartialEq)]
enum Said {
    Nothing,
    Hold(String),
    Notice(String),
}

impl Said {
    fn of(output: &Output) -> Self {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(output.stderr, b"");
        if output.stdout.is_empty() {
            return Self::Nothing;
        }
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |field: &str| said[field].as_str().unwrap().to_owned();
        if said.get("systemMessage").is_some() {
            assert_eq!(said.as_object().unwrap().len(), 1);
            return Self::Notice(text("systemMessage"));
        }
        assert_eq!(
            (&said["decision"], said.as_object().unwrap().len()),
            (&json!("block"), 2)
        );
        Self::Hold(text("reason"))
    }

    fn is_hold(&self) -> bool {
        matches!(self, Self::Hold(_))
    }

    fn notice(self) -> String {
        match self {
            Self::Notice(text) => text,
            other => panic!("no notice but {other:?}"),
        }
    }
}

/// A stop as the client sends it (2.1.332).
fn stop(message: &str) -> Value {
    json!({
        "session_id": SID,
        "transcript_path": format!("/home/u/.claude/projects/-home-u-proj/{SID}.jsonl"),
        "cwd": "/home/u/proj",
        "prompt_id": "p1",
        "permission_mode": "bypassPermissions",
        "effort": {"level": "medium"},
        "hook_event_name": "Stop",
        "stop_hook_active": false,
        "last_assistant_message": message,
        "background_tasks": [],
        "session_crons": [],
    })
}

fn with(mut payload: Value, field: &str, value: Value) -> Value {
    payload[field] = value;
    payload
}

#[test]
fn without_a_goal_nothing_is_said_and_nothing_written() {
    let home = Home::new();
    assert_eq!(home.stop(&stop("WAITING ON nobody")), Said::Nothing);
    assert_eq!(fs_err::read_dir(home.root()).unwrap().count(), 0);
}

#[test]
fn an_open_goal_holds_once_an_episode() {
    let home = Home::with_goal();
    let Said::Hold(reason) = home.stop(&stop("I did half of it.")) else {
        panic!("not held");
    };
    for part in [
        "still open: ship it\n",
        "rungs goal done`",
        "rungs goal pause`",
        "`WAITING ON <id>`",
        "`GOAL: m of m`",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let mode = fs_err::metadata(home.file(&format!("session/{SID}/gate.json")))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let active = with(stop("I did half of it."), "stop_hook_active", json!(true));
    assert_eq!(home.stop(&active), Said::Nothing);
    assert_eq!(home.stop(&stop("I did half of it.")), Said::Nothing);
    // A wake is a new turn and no new episode.
    home.prompt("p2", "<task-notification>\nthe task ended");
    assert_eq!(
        home.stop(&with(stop("more"), "prompt_id", json!("p2"))),
        Said::Nothing
    );
    // A person's prompt begins one, also where a hook made the turn go on.
    home.prompt("p3", "go on");
    assert!(home.stop(&with(active, "prompt_id", json!("p3"))).is_hold());
    assert_eq!(
        home.log().matches(" drive-gate hold: ").count(),
        2,
        "{}",
        home.log()
    );
    assert_eq!(
        home.log().matches(" drive-gate allow: held once").count(),
        3,
        "{}",
        home.log()
    );
}

#[test]
fn many_wakes_do_not_make_a_new_episode() {
    let home = Home::with_goal();
    assert!(home.stop(&stop("half")).is_hold());
    for wake in 0..90 {
        home.prompt(&format!("wake-{wake}"), "<task-notification>\nthe task ended");
    }
    assert_eq!(
        home.stop(&with(stop("half"), "prompt_id", json!("wake-89"))),
        Said::Nothing
    );
}

#[test]
fn a_changed_goal_or_ledger_is_a_new_episode() {
    let home = Home::with_goal();
    assert!(home.stop(&stop("half")).is_hold());
    home.goal(&["pause"]);
    assert_eq!(home.stop(&stop("half")), Said::Nothing);
    home.goal(&["resume"]);
    assert!(home.stop(&stop("half")).is_hold());
    home.put(
        &format!("blocked/{SID}/b-1.json"),
        r#"{"format":1,"state":"open","hard":false}"#,
    );
    assert!(home.stop(&stop("half")).is_hold());
    assert_eq!(home.stop(&stop("half")), Said::Nothing);
    home.goal(&["done"]);
    assert_eq!(home.stop(&stop("half")), Said::Nothing);
}

#[test]
fn what_will_wake_the_session_parks_it() {
    let home = Home::with_goal();
    let task = |status: &str| json!([{"id": "b1", "type": "shell", "status": status, "description": "d"}]);
    let cron = json!([{"id": "c1", "schedule": "0 9 * * 1-5", "recurring": true, "prompt": "go"}]);
    assert_eq!(
        home.stop(&with(stop("x"), "background_tasks", task("running"))),
        Said::Nothing
    );
    assert_eq!(home.stop(&with(stop("x"), "session_crons", cron)), Said::Nothing);
    assert_eq!(home.stop(&stop("x\nGOAL: 5 of 5")), Said::Nothing);
    let ended = with(stop("WAITING ON b1"), "background_tasks", task("completed"));
    let Said::Hold(reason) = home.stop(&ended) else {
        panic!("an ended task is no park");
    };
    assert!(
        reason.contains("`WAITING ON b1` names no running background task"),
        "{reason}"
    );
}

#[test]
fn a_mention_of_a_park_and_progress_do_not_park() {
    for message in [
        "```\nGOAL: 5 of 5\n```",
        "> WAITING ON b-1",
        "see `WAITING ON b-1`",
        "GOAL: 2 of 5",
    ] {
        let home = Home::with_goal();
        home.put(
            &format!("blocked/{SID}/b-1.json"),
            r#"{"format":1,"state":"open","hard":true}"#,
        );
        let Said::Hold(reason) = home.stop(&stop(message)) else {
            panic!("{message:?} parked");
        };
        assert!(reason.contains("Open blocks of this session: b-1."), "{reason}");
    }
}

#[test]
fn a_block_parks_and_its_doubt_is_said_once() {
    let home = Home::with_goal();
    for (id, row) in [
        ("open", r#"{"format":1,"state":"open","hard":true}"#),
        ("done", r#"{"format":1,"state":"answered","hard":true}"#),
        ("torn", r#"{"format":1,"sta"#),
        ("newer", r#"{"format":2,"state":{}}"#),
    ] {
        home.put(&format!("blocked/{SID}/{id}.json"), row);
    }
    let notice = home.stop(&stop("WAITING ON open")).notice();
    assert!(
        notice.contains(": open. Whether") && notice.contains("undeterminable"),
        "{notice}"
    );
    assert_eq!(home.stop(&stop("WAITING ON open")), Said::Nothing);
    assert_eq!(
        home.stop(&stop("WAITING ON torn\nWAITING ON newer")),
        Said::Nothing
    );
    assert!(home.stop(&stop("WAITING ON done")).is_hold());
    // Held and told are remembered apart.
    assert_eq!(home.stop(&stop("WAITING ON open")), Said::Nothing);
}

#[test]
fn a_hard_block_without_a_goal_is_let_through_and_said() {
    let home = Home::new();
    home.prompt("p1", "go");
    home.put(
        &format!("blocked/{SID}/b-1.json"),
        r#"{"format":1,"state":"open","hard":true}"#,
    );
    assert!(home.stop(&stop("x")).notice().contains("b-1"));
    assert_eq!(home.stop(&stop("x")), Said::Nothing);
    home.prompt("p2", "and now");
    assert!(home.stop(&stop("x")).notice().contains("b-1"));
    home.put(
        &format!("blocked/{SID}/b-1.json"),
        r#"{"format":1,"state":"answered","hard":true}"#,
    );
    assert_eq!(home.stop(&stop("x")), Said::Nothing);
}

#[test]
fn a_person_s_switches_always_let_go() {
    let home = Home::with_goal();
    let ours = home.file("loop/75a75ff2/PAUSED");
    let config = home.0.path().join("config");
    let theirs = config.join("jobs/loop/75a75ff2/PAUSED");
    let transcript = json!(config.join(format!("projects/p/{SID}.jsonl")));
    let payload = with(stop("x"), "transcript_path", transcript);
    for marker in [ours, theirs, home.file("off")] {
        fs_err::create_dir_all(marker.parent().unwrap()).unwrap();
        fs_err::write(&marker, "").unwrap();
        assert_eq!(home.stop(&payload), Said::Nothing, "{}", marker.display());
        fs_err::remove_file(&marker).unwrap();
    }
    assert!(home.stop(&payload).is_hold());
}

#[test]
fn only_the_session_s_own_stop_is_held() {
    let home = Home::with_goal();
    let others = [
        with(stop("x"), "agent_id", json!("a1")),
        with(stop("x"), "error", json!("rate_limit")),
        with(stop("x"), "hook_event_name", json!("SubagentStop")),
        with(stop("x"), "session_id", json!(OTHER)),
        with(stop("x"), "last_assistant_message", json!(null)),
    ];
    for payload in others {
        assert_eq!(home.stop(&payload), Said::Nothing, "{payload}");
    }
    assert!(home.stop(&stop("x")).is_hold());
}

#[test]
fn without_a_lease_the_turn_is_the_episode_or_nobody_is_held() {
    let home = Home::new();
    home.goal(&["set", "ship it"]);
    let active = with(stop("x"), "stop_hook_active", json!(true));
    assert_eq!(home.stop(&active), Said::Nothing);
    assert_eq!(
        home.stop(&with(stop("x"), "prompt_id", json!(null))),
        Said::Nothing
    );
    assert_eq!(
        home.stop(&with(stop("x"), "stop_hook_active", json!(null))),
        Said::Nothing
    );
    assert!(home.stop(&stop("x")).is_hold());
    assert_eq!(home.stop(&stop("x")), Said::Nothing);
    assert_eq!(
        home.log().matches("the episode is not known").count(),
        3,
        "{}",
        home.log()
    );
}

#[test]
fn a_goal_file_that_says_nothing_to_us_holds_nobody_and_stays() {
    let name = format!("goals/{SID}.json");
    for (text, why) in [
        ("", "is not understood"),
        ("{\"format\":1", "is not understood"),
        ("{\"format\":2,\"state\":\"open\"}", "has format 2, this version"),
        (
            "{\"format\":1,\"sid\":\"other\",\"text\":\"t\",\"state\":\"open\"}",
            "names another session (other)",
        ),
    ] {
        let home = Home::with_goal();
        home.put(&name, text);
        let notice = home.stop(&stop("x")).notice();
        assert!(notice.contains(why) && notice.contains(&name), "{notice}");
        for verb in [&["set", "new"][..], &["done"], &["pause"], &["resume"], &["show"]] {
            assert!(home.goal_error(verb).contains(why), "{verb:?}");
        }
        assert_eq!(fs_err::read_to_string(home.file(&name)).unwrap(), text);
    }
}

#[test]
fn a_latch_that_says_nothing_to_us_holds_nobody_and_stays() {
    let name = format!("session/{SID}/gate.json");
    for text in [
        "",
        "[]",
        "{}",
        "{\"format\":1,\"held\":7}",
        "{\"format\":2,\"held\":{}}",
    ] {
        let home = Home::with_goal();
        home.put(&name, text);
        let notice = home.stop(&stop("x")).notice();
        assert!(notice.contains("once the file is removed"), "{notice}");
        assert_eq!(fs_err::read_to_string(home.file(&name)).unwrap(), text);
        fs_err::remove_file(home.file(&name)).unwrap();
        assert!(home.stop(&stop("x")).is_hold());
    }
}

#[test]
fn unknown_fields_of_the_latch_survive() {
    let home = Home::with_goal();
    let name = format!("session/{SID}/gate.json");
    home.put(&name, r#"{"format":1,"later":[1,{"a":null}]}"#);
    assert!(home.stop(&stop("x")).is_hold());
    let latch = home.read(&name);
    assert_eq!(latch["later"], json!([1, {"a": null}]));
    assert_eq!(
        latch["held"],
        json!({"episode": "p1", "goal_revision": 1, "blocks": []})
    );
}

#[test]
fn files_of_another_user_and_links_hold_nobody() {
    let home = Home::with_goal();
    let goal = home.file(&format!("goals/{SID}.json"));
    let aside = home.file("aside.json");
    fs_err::rename(&goal, &aside).unwrap();
    fs_err::os::unix::fs::symlink(&aside, &goal).unwrap();
    assert!(home.stop(&stop("x")).notice().contains("can't be read"));
    fs_err::rename(&aside, &goal).unwrap();
    if chown(&goal, Some(12345), None).is_err() {
        eprintln!("SKIPPED in part: giving a file to another user needs root");
        return;
    }
    assert!(
        home.stop(&stop("x"))
            .notice()
            .contains("it belongs to another user")
    );
    chown(&goal, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    let latch = home.file(&format!("session/{SID}/gate.json"));
    fs_err::write(&latch, r#"{"format":1}"#).unwrap();
    chown(&latch, Some(12345), None).unwrap();
    assert!(
        home.stop(&stop("x"))
            .notice()
            .contains("it belongs to another user")
    );
}

#[test]
fn without_a_latch_nobody_is_held() {
    let home = Home::with_goal();
    // No file may grow: the latch can't be written, nor can the log.
    let gate = executable("drive-gate");
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -f 0; exec \"$0\""])
        .arg(gate)
        .env_clear()
        .env("HOME", home.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    assert_eq!(Said::of(&run(limited, &stop("x"))), Said::Nothing);
    assert!(!home.file(&format!("session/{SID}/gate.json")).exists());

    let lock = home.file(&format!("session/{SID}/gate.lock"));
    fs_err::remove_file(&lock).unwrap();
    fs_err::create_dir(&lock).unwrap();
    assert_eq!(home.stop(&stop("x")), Said::Nothing);
    assert!(home.log().contains(" drive-gate failed: "), "{}", home.log());
    fs_err::remove_dir(&lock).unwrap();
    assert!(home.stop(&stop("x")).is_hold());
}

#[test]
fn gates_at_once_hold_once() {
    for _round in 0..5 {
        let home = Home::with_goal();
        let gates: Vec<Child> = (0..8)
            .map(|_| start(home.command("drive-gate"), &stop("x")))
            .collect();
        let said = gates
            .into_iter()
            .map(|gate| Said::of(&gate.wait_with_output().unwrap()));
        assert_eq!(said.filter(Said::is_hold).count(), 1, "{}", home.log());
    }
}

#[test]
fn explain_tells_and_changes_nothing() {
    let home = Home::with_goal();
    let files = |home: &Home| {
        let mut names: Vec<PathBuf> = fs_err::read_dir(home.file(&format!("session/{SID}")))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        (names, home.log())
    };
    let explain = |home: &Home, payload: &Value| -> Value {
        let mut command = home.command("drive-gate");
        command.arg("--explain");
        serde_json::from_slice(&run(command, payload).stdout).unwrap()
    };
    let before = files(&home);
    let told = explain(&home, &stop("half"));
    assert_eq!((&told["decision"], &told["sid"]), (&json!("hold"), &json!(SID)));
    assert!(told["said"].as_str().unwrap().contains("ship it"));
    assert_eq!(told["parked"]["episode"], "p1");
    home.put("off", "");
    assert_eq!(explain(&home, &stop("half"))["reason"], "switched off");
    fs_err::remove_file(home.file("off")).unwrap();
    let none = explain(&home, &with(stop("half"), "session_id", json!(OTHER)));
    assert_eq!(none["reason"], "no open goal and no open hard block");
    assert_eq!(files(&home), before);
    assert!(home.stop(&stop("half")).is_hold());
}

#[test]
fn the_ways_out_run_as_they_are_said() {
    let home = Home::new();
    let other_root = home.0.path().join("an other root");
    for root_words in [&[][..], &["--root", other_root.to_str().unwrap()]] {
        home.goal(&[&["set", "ship it"], root_words].concat());
        for (verb, standing) in [("pause", "paused"), ("done", "done")] {
            home.goal(&[&["set", "ship it"], root_words].concat());
            let mut command = home.command("drive-gate");
            command.args(root_words);
            let Said::Hold(reason) = Said::of(&run(command, &stop("x"))) else {
                panic!("not held");
            };
            let is_way_out = |words: &&str| words.contains(&format!("rungs goal {verb}"));
            let words = reason.split('`').find(is_way_out).unwrap();
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", words]).env_clear();
            shell
                .env("HOME", home.0.path())
                .env("CLAUDE_CODE_SESSION_ID", SID);
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{words}: {output:?}");
            let shown = home.goal(&[&["show", "--json"], root_words].concat());
            let shown: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(shown["state"], standing);
        }
    }
}

#[test]
fn a_goal_is_stated_shown_and_ended() {
    let home = Home::new();
    assert_eq!(home.goal(&["set", "  ship it \n"]), format!("goal open: {SID}\n"));
    let shown = home.goal(&["show"]);
    assert!(shown.starts_with(&format!("{SID} (open, set 20")), "{shown}");
    assert!(shown.ends_with("Z by a session)\nship it\n"), "{shown}");
    assert_eq!(home.goal(&["done"]), format!("goal done: {SID}\n"));
    let shown: Value = serde_json::from_str(&home.goal(&["show", "--json"])).unwrap();
    assert_eq!(
        (&shown["state"], &shown["claimed_done_by"]),
        (&json!("done"), &json!("session"))
    );
    assert_eq!(home.goal(&["set", "the next one"]), format!("goal open: {SID}\n"));
    assert_eq!(home.read(&format!("goals/{SID}.json"))["revision"], 3);
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.file(&format!("goals/{SID}.json"))), 0o600);
    assert_eq!(mode(&home.file("goals")), 0o700);
}

#[test]
fn unknown_fields_of_the_goal_survive() {
    let home = Home::with_goal();
    let name = format!("goals/{SID}.json");
    let mut goal = home.read(&name);
    goal["criterion"] = json!(["a", {"b": null}]);
    home.put(&name, &goal.to_string());
    home.goal(&["pause"]);
    home.goal(&["resume"]);
    home.goal(&["set", "another"]);
    assert_eq!(home.read(&name)["criterion"], json!(["a", {"b": null}]));
    assert_eq!(home.read(&name)["paused_at"], json!(null));
}

#[test]
fn a_goal_of_another_session_is_named_in_full_and_not_inherited() {
    let home = Home::with_goal();
    let shown = home.goal_error(&["show", "--sid", OTHER]);
    assert!(shown.contains("has no goal"), "{shown}");
    let mut person = home.command("rungs");
    person.args(["goal", "set", "theirs", "--sid", OTHER]);
    assert!(person.output().unwrap().status.success());
    assert_eq!(home.read(&format!("goals/{OTHER}.json"))["set_by"], "person");
    assert_eq!(home.read(&format!("goals/{SID}.json"))["text"], "ship it");
}

#[test]
fn every_misuse_of_goal_names_the_thing_and_the_way_out() {
    let home = Home::new();
    let nobody = home.command("rungs").args(["goal", "show"]).output().unwrap();
    assert!(error_of(&nobody).contains("name one with --sid"));
    for bad in [
        "my-session",
        "75a75ff2",
        "../x",
        "",
        "75a75ff2-40b5-445d-a60f-2558410a19f/",
    ] {
        let said = home.goal_error(&["show", "--sid", bad]);
        assert!(said.contains("is no full session id"), "{said}");
    }
    assert!(home.goal_error(&["set", " \n "]).contains("the goal is empty"));
    assert!(
        home.goal_error(&["set", &"é".repeat(4001)])
            .contains("4001 characters, at most 4000")
    );
    for verb in ["done", "pause", "resume", "show"] {
        let said = home.goal_error(&[verb]);
        assert!(said.contains("`rungs goal set TEXT` states one"), "{said}");
    }
    home.goal(&["set", &"é".repeat(4000)]);
    assert!(home.goal_error(&["resume"]).contains("is open"));
    home.goal(&["pause"]);
    assert!(home.goal_error(&["pause"]).contains("is paused"));
    home.goal(&["done"]);
    assert!(home.goal_error(&["done"]).contains("is done already"));
    assert!(home.goal_error(&["pause"]).contains("is done"));
    let usage = home.try_goal(&["dance"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
    fs_err::write(home.0.path().join("file"), "").unwrap();
    let root = home.0.path().join("file").display().to_string();
    assert!(
        home.goal_error(&["show", "--root", &root])
            .contains("the state root")
    );
}
