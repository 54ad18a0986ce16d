//! A session that is a person's at the moment: a question, a prompt for
//! permission, a plan, an interrupted turn, half-typed text. With the suite
//! installed and a goal open, nothing is typed and nothing restarted.

#![allow(clippy::unwrap_used, reason = "a broken expectation is the test's failure")]

use std::time::Duration;

use serde_json::{Value, json};
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, SessionFile, Tmux};
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Step, Window, in_seconds};
use tests::suite::Suite;

const DONE: &str = "went on and done";

/// Longer than any wait of these tests, so that what was to come has come.
const QUIET: Duration = Duration::from_secs(8);

/// Nothing happens for a while: the cursor and the text at it stay, the same
/// process, no request, no heal, no hold.
fn assert_untouched(api: &MockApi, home: &Home, suite: &Suite, terminal: &Tmux, before: &SessionFile) {
    let requests = api.main_requests().len();
    // The client draws in several steps.
    std::thread::sleep(Duration::from_secs(1));
    let cursor = cursor_lines(&terminal.screen());
    assert!(!cursor.is_empty(), "{}", terminal.screen());
    std::thread::sleep(QUIET);
    let screen = terminal.screen();
    assert_eq!(cursor_lines(&screen), cursor, "{screen}");
    assert_eq!(api.main_requests().len(), requests, "{}", api.describe());
    let sessions = home.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let after = sessions.last().unwrap();
    assert_eq!(
        (after.pid, &after.session_id, &after.status),
        (before.pid, &before.session_id, &before.status)
    );
    let sid = &before.session_id;
    assert_eq!(suite.episodes(sid), Vec::<Value>::new(), "{}", suite.log(sid));
    assert!(
        !suite.events(sid).iter().any(|event| event == "injected"),
        "{:?}",
        suite.events(sid)
    );
}

/// Where the person's cursor is, with the text beside it: in the composer, or at
/// the marked answer of a question. The rest of the screen moves by itself.
fn cursor_lines(screen: &str) -> Vec<String> {
    let lines = screen.lines().filter(|line| line.contains('❯'));
    lines.map(|line| line.trim().to_owned()).collect()
}

fn open_goal(suite: &Suite, sid: &str) {
    suite.run("rungs", &["goal", "set", "ship it", "--sid", sid]);
}

/// A session that stops at a question of the client's; the person then answers
/// with Enter, and the turn goes on.
fn waits_for_a_person(flags: &[&str], step: Step, shown: &str) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    api.account("A", [step], Step::text("went on\nGOAL: 1 of 1"));
    let terminal = Tmux::start(&home, Pane::Shell, flags);
    open_goal(&suite, &home.wait_session("idle", PATIENCE).session_id);
    terminal.prompt("please do it");
    terminal.wait_for(shown, PATIENCE);
    let before = home.wait_session("waiting", PATIENCE);
    assert_untouched(&api, &home, &suite, &terminal, &before);

    terminal.key("Enter");
    terminal.wait_for("went on", PATIENCE);
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
}

#[test]
fn a_permission_prompt_is_left_to_the_person() {
    let step = Step::bash("touch made-by-the-test");
    waits_for_a_person(&["--permission-mode", "default"], step, "Do you want to");
}

#[test]
fn a_question_is_left_to_the_person() {
    let question = json!({ "questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [
            { "label": "Red", "description": "warm" },
            { "label": "Blue", "description": "cold" }
        ]
    }] });
    let step = Step::tool("AskUserQuestion", question);
    waits_for_a_person(&[NO_QUESTIONS], step, "Which colour?");
}

#[test]
fn a_plan_is_left_to_the_person() {
    let step = Step::tool("ExitPlanMode", json!({ "plan": "1. Paint it blue." }));
    waits_for_a_person(&["--permission-mode", "plan"], step, "Exit plan mode?");
}

/// Esc in the middle of a turn: the person stopped it, an open goal or not.
#[test]
fn an_interrupted_turn_stays_interrupted() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    let slow = Step::text("too late").delay(Duration::from_secs(30));
    api.account("A", [slow], Step::text("a new task\nGOAL: 1 of 1"));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    open_goal(&suite, &home.wait_session("idle", PATIENCE).session_id);
    terminal.prompt("please do it");
    home.wait_session("busy", PATIENCE);
    api.wait_main(1, PATIENCE);
    terminal.key("Escape");
    let before = home.wait_session("idle", PATIENCE);
    assert_untouched(&api, &home, &suite, &terminal, &before);
    assert_eq!(suite.events(&before.session_id), ["start", "prompt"]);
}

/// A failure while a person types: the text is still there when the session has
/// gone on by itself, and was sent to nobody.
fn text_survives(failing: Failure, goes_on: bool) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.configure(&json!({ "backoff_s_min": 3, "backoff_s_max": 5 }));
    if goes_on {
        suite.add_account("B");
    }
    let late = Step::fail(failing).delay(Duration::from_secs(4));
    api.account("A", [late], Step::text(DONE));
    api.account("B", [], Step::text(DONE));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("please do it");
    api.wait_main(1, PATIENCE);
    terminal.type_text("half a thought");
    terminal.wait_for("half a thought", PATIENCE);

    if goes_on {
        terminal.wait_for(DONE, PATIENCE);
    } else {
        suite.wait_intent(&before.session_id, "park", PATIENCE);
    }
    std::thread::sleep(QUIET);
    let after = home.wait_session("idle", PATIENCE);
    assert_eq!(after.pid, before.pid);
    assert_eq!(
        api.main_requests().len(),
        1 + usize::from(goes_on),
        "{}",
        api.describe()
    );
    let screen = terminal.screen();
    assert!(screen.contains("half a thought"), "{screen}");

    // The person finishes the sentence: nothing was lost and nothing added.
    api.account("A", [], Step::text("an answer to the whole"));
    api.account("B", [], Step::text("an answer to the whole"));
    terminal.prompt(" and its end");
    terminal.wait_for("an answer to the whole", PATIENCE);
    let last = api.main_requests().pop().unwrap();
    assert_eq!(last.conversation.count_text("half a thought and its end"), 1);
}

#[test]
fn half_typed_text_survives_a_move_at_a_five_hour_wall() {
    text_survives(Failure::wall(Window::FiveHour, in_seconds(3 * 3600)), true);
}

#[test]
fn half_typed_text_survives_a_park() {
    text_survives(Failure::wall(Window::FiveHour, in_seconds(3 * 3600)), false);
}

#[test]
fn half_typed_text_survives_a_wake_after_an_outage() {
    text_survives(Failure::overloaded(), true);
}
