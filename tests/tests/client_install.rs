//! Ways to have the hooks, on the real client: by settings, by a plugin, by both;
//! and install, upgrade and uninstall under a session that runs.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, alive};
use tests::executables::executable;
use tests::files::write_executable;
use tests::login::Login;
use tests::mock_api::{MockApi, Step, Window, in_seconds};
use tests::suite::Suite;

const DONE: &str = "all done on the other account";

/// The settings' `env` reaches a session that runs already after some seconds
/// (measured, 2.1.332: not at the next prompt, yes 10 s later).
const SETTINGS_ARRIVE: Duration = Duration::from_secs(12);

/// A tool call, then a 5-hour wall on A; B answers.
fn wall_in_a_tool_loop(api: &MockApi) {
    let wall = Step::wall(Window::FiveHour, in_seconds(3 * 3600));
    api.account(
        "A",
        [Step::bash("echo from-the-tool"), wall.times(1)],
        Step::text("A again"),
    );
    api.account("B", [], Step::text(DONE));
}

/// One refusal by A, one continuation on B, one flip, one episode.
fn assert_one_act(api: &MockApi, suite: &Suite, sid: &str) {
    suite.wait_event(sid, "stop", 1, PATIENCE);
    // A second act would come at once: both hooks start together.
    std::thread::sleep(Duration::from_secs(5));
    let requests = api.main_requests();
    let seen: Vec<(&str, u16)> = requests
        .iter()
        .map(|request| (request.account.as_str(), request.status))
        .collect();
    assert_eq!(seen, [("A", 200), ("A", 429), ("B", 200)], "{}", api.describe());
    assert!(requests[2].conversation.continues(&requests[1].conversation));
    assert!(requests[2].conversation.is_complete());
    assert_eq!(suite.flips().len(), 1, "{:?}", suite.flips());
    assert_eq!(suite.account_of("default"), "B");
    let episodes = suite.episodes(sid);
    assert_eq!(episodes.len(), 1, "{episodes:?}");
    assert_eq!(episodes[0]["outcome"], "woken", "{episodes:?}");
}

/// The plugin alone: the settings hold no hook, and a wall is healed the same.
#[test]
fn the_plugin_heals_a_wall() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_plugin(&home);
    suite.add_account("B");
    assert!(home.settings().get("hooks").is_none(), "{}", home.settings());
    wall_in_a_tool_loop(&api);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    assert_one_act(&api, &suite, &sid);
}

/// Settings and plugin: every hook runs twice, and one of the two acts.
#[test]
fn installed_twice_is_still_one_act() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_plugin();
    suite.add_account("B");
    wall_in_a_tool_loop(&api);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    assert_one_act(&api, &suite, &sid);
    let events = suite.events(&sid);
    let starts = events.iter().filter(|event| *event == "start").count();
    assert_eq!(starts, 2, "the hooks did not run twice: {events:?}");
    let log = suite.log(&sid);
    assert_eq!(
        log.matches("another run of this hook has the episode").count(),
        1,
        "{log}"
    );
}

/// A session that was there before the suite is healed like any other.
#[test]
fn an_install_reaches_a_session_that_runs() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    api.account("A", [], Step::text("before the suite"));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("are you there");
    terminal.wait_for("before the suite", PATIENCE);
    home.wait_session("idle", PATIENCE);

    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api);
    std::thread::sleep(SETTINGS_ARRIVE);
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);

    let after = home.wait_session("idle", PATIENCE);
    assert_eq!((before.pid, &before.session_id), (after.pid, &after.session_id));
    let seen: Vec<(String, u16)> = api
        .main_requests()
        .into_iter()
        .map(|request| (request.account, request.status))
        .collect();
    let a = |status| ("A".to_owned(), status);
    assert_eq!(seen, [a(200), a(200), a(429), ("B".to_owned(), 200)]);
    assert_eq!(suite.flips().len(), 1);
    assert_eq!(suite.account_of("default"), "B");
}

/// Another build of the suite: the same programs, but each session-lease leaves a
/// line, and the others differ in their last byte.
fn newer_build(home: &Home) -> PathBuf {
    let folder = home.path().join("newer-build");
    fs_err::create_dir(&folder).unwrap();
    for name in ["drive-gate", "walled-heal", "wedge-heal", "rungs", "ccswitch"] {
        let copy = folder.join(name);
        fs_err::copy(executable(name), &copy).unwrap();
        let mut file = fs_err::OpenOptions::new().append(true).open(&copy).unwrap();
        std::io::Write::write_all(&mut file, b"\n").unwrap();
    }
    let lease = executable("session-lease");
    let text = format!(
        "#!/bin/sh\necho run >>\"$HOME/newer-runs\"\nexec '{}' \"$@\"\n",
        lease.display()
    );
    write_executable(&folder.join("session-lease"), &text);
    folder
}

fn runs_of_the_newer(home: &Home) -> usize {
    let text = fs_err::read_to_string(home.path().join("newer-runs"));
    text.unwrap_or_default().lines().count()
}

/// An upgrade under a parked session: its sleeping hook, of the older build, still
/// wakes it once at the reset; what runs from then on is the newer build.
#[test]
fn an_upgrade_reaches_a_parked_session() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.configure(&json!({ "park_margin_s": 5 }));
    let reset = in_seconds(30);
    api.account(
        "A",
        [Step::wall(Window::FiveHour, reset).until(reset)],
        Step::text(DONE),
    );

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id;
    terminal.prompt("please do it");
    let parked = suite.wait_intent(&sid, "park", PATIENCE);

    let build = newer_build(&home);
    let upgrade = home.command(build.join("rungs")).arg("install").output().unwrap();
    assert!(upgrade.status.success(), "{upgrade:?}");
    let sleeper = u32::try_from(parked["pid"].as_u64().unwrap()).unwrap();
    assert!(alive(sleeper), "{}", suite.log(&sid));
    assert_eq!(runs_of_the_newer(&home), 0);
    assert_eq!(api.main_requests().len(), 1, "{}", api.describe());

    terminal.wait_for(DONE, Duration::from_mins(2));
    suite.wait_event(&sid, "stop", 1, PATIENCE);
    let after = home.wait_session("idle", PATIENCE);
    assert_eq!((after.pid, &after.session_id), (before.pid, &sid));
    let runs = runs_of_the_newer(&home);
    assert!(runs >= 2, "{runs}: the wake's prompt and its stop");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(api.main_requests().len(), 2, "{}", api.describe());
    let log = suite.log(&sid);
    assert!(!log.contains("nobody looks afterwards"), "{log}");

    // Idle now: the next turn goes through the newer build too.
    terminal.prompt("and again");
    suite.wait_event(&sid, "stop", 2, PATIENCE);
    assert_eq!(runs_of_the_newer(&home), runs_in(&suite, &sid, runs));
}

/// The runs that the lease's lines account for, since there were `runs` of them.
fn runs_in(suite: &Suite, sid: &str, runs: usize) -> usize {
    let events = suite.events(sid);
    let first_stop = events.iter().position(|event| event == "stop").unwrap();
    runs + events.len() - first_stop - 1
}

/// The transcript's lines of hooks that failed.
fn hook_troubles(home: &Home, sid: &str) -> Vec<Value> {
    let lines = home.transcript(sid).lines;
    let is_trouble = |line: &Value| {
        let kind = line.pointer("/attachment/type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.starts_with("hook_") && kind != "hook_success")
    };
    lines.into_iter().filter(is_trouble).collect()
}

fn programs_in(prefix: &Path) -> usize {
    fs_err::read_dir(prefix.join("bin")).map_or(0, |entries| entries.flatten().count())
}

/// An uninstall under a session that had been moved: its settings are what they
/// were, no turn shows a failing hook, and it and new sessions have a login.
#[test]
fn an_uninstall_leaves_a_running_session_at_work() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    // At its first start the client writes an entry of its own into the settings.
    let first = home.run_claude(&["-p", "hello"], PATIENCE);
    assert_eq!(first.code, Some(0), "{first:?}");
    let path = home.config().join("settings.json");
    let settings = fs_err::read(&path).unwrap();
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api);
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id;
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    suite.wait_event(&sid, "stop", 1, PATIENCE);
    home.wait_session("idle", PATIENCE);
    let lease = suite.lease(&sid).len();

    suite.run("rungs", &["uninstall"]);
    assert_eq!(fs_err::read(&path).unwrap(), settings);
    assert_eq!(programs_in(&suite.prefix()), 0);
    // At once, and when the settings have long arrived.
    for (pause, answer) in [
        (Duration::ZERO, "without hooks"),
        (SETTINGS_ARRIVE, "still at work"),
    ] {
        std::thread::sleep(pause);
        api.anyone([], Step::text(answer));
        terminal.prompt("and again");
        terminal.wait_for(answer, PATIENCE);
        home.wait_session("idle", PATIENCE);
        home.wait_answer(&sid, answer, PATIENCE);
    }
    let after = home.wait_session("idle", PATIENCE);
    assert_eq!((before.pid, &sid), (after.pid, &after.session_id));
    let troubles = hook_troubles(&home, &sid);
    assert!(troubles.is_empty(), "{troubles:?}\n{}", terminal.history());
    let shown = terminal.history().to_lowercase();
    assert!(
        !shown.contains("hook failed") && !shown.contains("hook error"),
        "{shown}"
    );
    assert_eq!(suite.lease(&sid).len(), lease, "a hook ran after the uninstall");

    // A new session has the client's own login again.
    let output = home.run_claude(&["-p", "hello", NO_QUESTIONS], PATIENCE);
    assert_eq!(output.stdout.trim(), "still at work", "{output:?}");
    let requests = api.main_requests();
    assert_eq!(requests.last().unwrap().account, "A", "{}", api.describe());
    assert!(requests.iter().rev().take(3).all(|request| request.status == 200));
}
