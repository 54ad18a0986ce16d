//! Hooks that are missing, crash, hang or talk nonsense never cost a turn. This
//! is the client's half of "fail open"; the other half is each hook's own.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Recorder, Tmux};
use tests::files::write_executable;
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Step};
use tests::suite::Suite;

/// The events that the suite listens to.
const EVENTS: [&str; 6] = [
    "SessionStart",
    "UserPromptSubmit",
    "Stop",
    "StopFailure",
    "Notification",
    "SessionEnd",
];

/// The limit of a hanging hook, in seconds.
const HOOK_TIMEOUT_S: u64 = 2;

/// One broken hook on every event.
fn hooks_of(command: &Value) -> Value {
    let mut hooks = json!({});
    for event in EVENTS {
        hooks[event] = json!([{ "hooks": [{
            "type": "command", "command": command, "args": [], "timeout": HOOK_TIMEOUT_S
        }] }]);
    }
    json!({ "hooks": hooks })
}

/// Runs a turn with a tool call and a further turn, and returns how long they took.
fn two_turns_with(client: &Client, program: Option<&str>) -> Duration {
    let api = MockApi::start();
    let home = Home::new(client, &api, &Login::new("A"));
    let path = home.path().join("bin/broken-hook");
    if let Some(text) = program {
        write_executable(&path, text);
    }
    home.write_settings(&hooks_of(&json!(path)));
    let steps = [Step::bash("echo from-the-tool"), Step::text("first answer")];
    api.account("A", steps, Step::text("second answer"));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let start = Instant::now();
    terminal.prompt("please do it");
    terminal.wait_for("first answer", PATIENCE);
    home.wait_session("idle", PATIENCE);
    terminal.prompt("and again");
    terminal.wait_for("second answer", PATIENCE);
    home.wait_session("idle", PATIENCE);
    let took = start.elapsed();

    let requests = api.main_requests();
    assert_eq!(requests.len(), 3, "{}", api.describe());
    assert!(requests[2].conversation.continues(&requests[1].conversation));
    assert!(requests[2].conversation.has_text("and again"));
    took
}

#[test]
fn a_missing_hook_costs_no_turn() {
    let Some(client) = Client::find() else { return };
    two_turns_with(&client, None);
}

#[test]
fn a_crashing_hook_costs_no_turn() {
    let Some(client) = Client::find() else { return };
    two_turns_with(&client, Some("#!/bin/sh\nkill -SEGV $$\n"));
}

#[test]
fn a_hook_that_fails_and_talks_nonsense_costs_no_turn() {
    let Some(client) = Client::find() else { return };
    two_turns_with(&client, Some("#!/bin/sh\necho '{\"decision\": '\nexit 1\n"));
}

#[test]
fn a_hook_that_never_reads_its_input_costs_no_turn() {
    let Some(client) = Client::find() else { return };
    two_turns_with(&client, Some("#!/bin/sh\nexec <&-\nexit 0\n"));
}

#[test]
fn a_hanging_hook_costs_its_timeout_and_no_turn() {
    let Some(client) = Client::find() else { return };
    let took = two_turns_with(&client, Some("#!/bin/sh\nsleep 600\n"));
    // Two prompts and two stops wait for their hook.
    assert!(
        took >= Duration::from_secs(4 * HOOK_TIMEOUT_S),
        "{took:?}: did the hook run?"
    );
}

#[test]
fn a_crashing_wake_hook_leaves_the_failed_session_as_it_was() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let recorder = Recorder::install(&home);
    let crash = home.path().join("bin/crash");
    write_executable(
        &crash,
        "#!/bin/sh\necho 'do not deliver this' >&2\nkill -KILL $$\n",
    );
    let crashing = json!({ "hooks": [{
        "type": "command", "command": crash, "args": [], "timeout": 60, "asyncRewake": true
    }] });
    let mut hooks = recorder.hooks(&["UserPromptSubmit", "Stop"]);
    hooks["StopFailure"] = json!([crashing, recorder.group(0.0, 0, "")]);
    home.write_settings(&json!({ "hooks": hooks }));
    api.account("A", [Step::fail(Failure::overloaded())], Step::text("back again"));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    terminal.prompt("please do it");
    recorder.wait("StopFailure", 1, PATIENCE);
    home.wait_session("idle", PATIENCE);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(api.main_requests().len(), 1, "{}", api.describe());

    terminal.prompt("are you there");
    terminal.wait_for("back again", PATIENCE);
    let newest = api.wait_main(2, PATIENCE).pop().unwrap();
    assert!(newest.conversation.has_text("please do it"));
    assert!(newest.conversation.has_text("are you there"));
    assert!(!newest.conversation.has_text("do not deliver this"));
    recorder.wait("Stop", 1, PATIENCE);
    assert_eq!(recorder.of("UserPromptSubmit").len(), 2);
}

/// What happens to the suite under a running session.
#[derive(Clone, Copy)]
enum Loss {
    /// Its programs are gone.
    Programs,
    /// A file stands where its state was.
    State,
    /// Nothing more can be written: each hook runs with a file size limit of 0.
    Space,
}

/// The suite breaks under a running session: good turns go on as if it were not
/// there, a failed turn stays where it is, and the next prompt works.
fn the_suite_breaks(loss: Loss) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("the first");
    terminal.wait_for("mock answer", PATIENCE);
    suite.wait_event(&before.session_id, "stop", 1, PATIENCE);

    match loss {
        Loss::Programs => {
            let settings = home.settings();
            let program = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str();
            let folder = std::path::Path::new(program.unwrap()).parent();
            fs_err::remove_dir_all(folder.unwrap()).unwrap();
        }
        Loss::State => {
            fs_err::rename(suite.root(), home.path().join("state-moved-away")).unwrap();
            fs_err::write(suite.root(), "not a folder").unwrap();
        }
        Loss::Space => limit_file_size(&home),
    }

    let steps = [
        Step::bash("echo from-the-tool"),
        Step::text("an answer without the suite"),
        Step::fail(Failure::overloaded()),
    ];
    api.account("A", steps, Step::text("back again"));
    terminal.prompt("the second");
    terminal.wait_for("an answer without the suite", PATIENCE);
    home.wait_session("idle", PATIENCE);
    terminal.prompt("the third");
    api.wait_main(4, PATIENCE);
    home.wait_session("idle", PATIENCE);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(api.main_requests().len(), 4, "{}", api.describe());

    terminal.prompt("the fourth");
    terminal.wait_for("back again", PATIENCE);
    let last = api.wait_main(5, PATIENCE).pop().unwrap();
    for prompt in ["the first", "the second", "the third", "the fourth"] {
        assert!(last.conversation.has_text(prompt), "{prompt}: {last:?}");
    }
    assert!(last.conversation.has_tool_result("from-the-tool"));
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
}

/// Wraps every hook of the settings; the client reads them live.
fn limit_file_size(home: &Home) {
    let mut settings = home.settings();
    let events = settings["hooks"].as_object_mut().unwrap();
    let groups = events.values_mut().filter_map(Value::as_array_mut).flatten();
    let hooks = groups.filter_map(|group| group["hooks"].as_array_mut()).flatten();
    for hook in hooks {
        let mut arguments = vec![
            json!("-c"),
            json!("ulimit -f 0; exec \"$0\" \"$@\""),
            hook["command"].clone(),
        ];
        arguments.extend(hook["args"].as_array().cloned().unwrap_or_default());
        hook["command"] = json!("/bin/sh");
        hook["args"] = json!(arguments);
    }
    home.write_settings(&settings);
}

#[test]
fn the_suites_programs_vanish_under_a_session() {
    the_suite_breaks(Loss::Programs);
}

#[test]
fn a_file_in_the_place_of_the_state_costs_no_turn() {
    the_suite_breaks(Loss::State);
}

#[test]
fn a_disk_that_takes_nothing_more_costs_no_turn() {
    the_suite_breaks(Loss::Space);
}
