//! Turns that died, on the real client: waited out and woken, restarted as the
//! same session, or left as they are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::Duration;

use serde_json::{Value, json};
use tests::client::{Background, Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, wait_until};
use tests::files::read_json;
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Step};
use tests::suite::Suite;

const DONE: &str = "all done after the heal";

fn intent(suite: &Suite, sid: &str) -> Value {
    let path = suite.root().join(format!("session/{sid}/restart.json"));
    read_json(&path).unwrap_or(Value::Null)
}

fn wait_restart(suite: &Suite, sid: &str) -> Value {
    let is_settled = wait_until(PATIENCE, || intent(suite, sid)["outcome"].is_string());
    assert!(is_settled, "{}\n{}", intent(suite, sid), suite.log(sid));
    intent(suite, sid)["outcome"].clone()
}

/// "Prompt is too long" and no compaction: people were healed of it by a new
/// process on the same session (anthropics/claude-code#9527). Same sid, one
/// transcript, the options kept, the work goes on.
fn comes_back(pane: Pane) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    api.account(
        "A",
        [Step::bash("echo from-the-tool")],
        Step::fail(Failure::prompt_too_long()),
    );

    let terminal = Tmux::start(
        &home,
        pane,
        &[
            NO_QUESTIONS,
            "--model",
            "opus",
            "--allowedTools",
            "Bash(git *)",
            "Edit",
        ],
    );
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id.clone();
    terminal.prompt("please do it");
    suite.wait_intent(&sid, "restart", PATIENCE);
    api.account("A", [], Step::text(DONE));
    assert_eq!(
        wait_restart(&suite, &sid),
        "restarted",
        "{}\n{}",
        suite.log(&sid),
        terminal.screen()
    );
    terminal.wait_for(DONE, PATIENCE);

    let after = home.wait_session("idle", PATIENCE);
    assert_eq!(after.session_id, sid);
    assert_ne!(after.pid, before.pid);
    assert_eq!(home.sessions().len(), 1, "one process");
    assert_eq!(home.transcript_paths().len(), 1, "one transcript");
    let argv = shared::edge::proc::argv(after.pid.cast_signed()).unwrap();
    let argv: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    for kept in [
        &[NO_QUESTIONS][..],
        &["--model", "opus"],
        &["--allowedTools", "Bash(git *)", "Edit"],
        &["--resume", &sid],
    ] {
        assert!(
            argv.windows(kept.len()).any(|words| words == kept),
            "{kept:?} is not in {argv:?}"
        );
    }
    let requests = api.main_requests();
    let last = requests.last().unwrap();
    assert!(
        last.conversation.has_tool_result("from-the-tool"),
        "the conversation is whole"
    );
    assert!(last.conversation.has_text("rungs: "));
    assert!(suite.signal(&sid, "wedge-heal").is_none());
}

#[test]
fn a_session_in_a_shell_comes_back_as_itself() {
    comes_back(Pane::Shell);
}

#[test]
fn a_session_that_is_the_panes_command_comes_back_as_itself() {
    comes_back(Pane::Client);
}

/// The same failure after the restart: no second one, a signal.
#[test]
fn a_restart_that_changed_nothing_is_not_repeated() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    api.account("A", [], Step::fail(Failure::prompt_too_long()));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    let is_signalled = wait_until(PATIENCE, || suite.signal(&sid, "wedge-heal").is_some());
    assert!(is_signalled, "{}", suite.log(&sid));
    let signal = suite.signal(&sid, "wedge-heal").unwrap();
    assert_eq!(signal["state"], "needs-person", "{signal}");
    assert_eq!(signal["tried"].as_array().map(Vec::len), Some(1), "{signal}");
    assert_eq!(home.sessions().len(), 1);
}

/// Text that a person has typed and not sent is worth more than a restart.
#[test]
fn half_typed_text_is_left_as_it_is() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    let late = Step::fail(Failure::prompt_too_long()).delay(Duration::from_secs(4));
    api.account("A", [late], Step::fail(Failure::prompt_too_long()));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("please do it");
    api.wait_main(1, PATIENCE);
    terminal.type_text("half a thought");
    let outcome = wait_restart(&suite, &before.session_id);
    assert_eq!(outcome, "vetoed", "{}", terminal.screen());
    assert!(terminal.screen().contains("half a thought"));
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
}

/// 529 from a service that recovers: one wake, the same process.
#[test]
fn an_overloaded_service_is_waited_out_in_a_terminal() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    suite.configure(&json!({"backoff_s_min": 1, "backoff_s_max": 8}));
    api.account(
        "A",
        [Step::fail(Failure::overloaded()).times(2)],
        Step::text(DONE),
    );
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        api.main_requests().len(),
        3,
        "two failed, one answered: {}",
        api.describe()
    );
    let woken = suite.episodes(&before.session_id);
    let woken = woken.iter().filter(|episode| episode["outcome"] == "woken");
    assert_eq!(woken.count(), 2, "{}", suite.log(&before.session_id));
}

#[test]
fn an_overloaded_service_is_waited_out_in_the_background() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    suite.configure(&json!({"backoff_s_min": 1, "backoff_s_max": 8}));
    api.account("A", [Step::fail(Failure::overloaded())], Step::text(DONE));
    let background = Background::start(&home, &[], "please do it");
    api.wait_main(2, PATIENCE);
    let sid = background.session().unwrap().session_id;
    home.wait_answer(&sid, DONE, PATIENCE);
}

#[test]
fn a_typed_prompt_during_the_wait_calls_the_wake_off() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install_hooks(&home);
    suite.configure(&json!({"backoff_s_min": 5, "backoff_s_max": 15}));
    api.account("A", [Step::fail(Failure::internal())], Step::text(DONE));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    suite.wait_intent(&sid, "wait", PATIENCE);
    terminal.prompt("never mind, do this");
    suite.wait_outcome(&sid, "stale", PATIENCE);
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(api.main_requests().len(), 2, "no late wake: {}", api.describe());
}
