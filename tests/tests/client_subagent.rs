//! A sub-agent at the wall is not its session at the wall.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use serde_json::json;
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, wait_until};
use tests::login::Login;
use tests::mock_api::{MockApi, Step, Window, in_seconds};
use tests::suite::Suite;

/// The sub-agent's account is marked, so that nobody is moved to it; the main
/// turn, which goes on, is left alone.
#[test]
fn a_sub_agents_wall_marks_the_account_and_leaves_the_session() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    let delegate = Step::tool(
        "Agent",
        json!({ "description": "look", "prompt": "SUB-TASK: look around",
            "subagent_type": "general-purpose" }),
    );
    api.account(
        "A",
        [delegate, Step::bash("sleep 6; echo main-went-on")],
        Step::text("the main turn is done"),
    );
    let reset = in_seconds(3 * 3600);
    api.prompt("SUB-TASK", [], Step::wall(Window::FiveHour, reset));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id;
    terminal.prompt("please do it");
    terminal.wait_for("the main turn is done", PATIENCE);
    suite.wait_event(&sid, "stop", 1, PATIENCE);
    let marked = || suite.pool()["accounts"]["A"]["walls"]["five_hour"]["resets_at"].is_i64();
    assert!(
        wait_until(PATIENCE, marked),
        "{}\n{}",
        suite.pool(),
        suite.log(&sid)
    );
    // The client itself tells the main turn of its sub-agent's end.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let after = home.wait_session("idle", PATIENCE);

    let requests = api.main_requests();
    let (of_sub_agent, of_main): (Vec<_>, Vec<_>) = requests
        .iter()
        .partition(|request| request.conversation.first_prompt().contains("SUB-TASK"));
    assert!(
        of_sub_agent.iter().all(|request| request.status == 429),
        "{}",
        api.describe()
    );
    assert!(
        !of_sub_agent.is_empty() && of_main.len() >= 3,
        "{}",
        api.describe()
    );
    for request in &of_main {
        assert_eq!(
            (request.account.as_str(), request.status),
            ("A", 200),
            "{}",
            api.describe()
        );
    }
    assert!(of_main[2].conversation.has_tool_result("main-went-on"));
    assert!(
        of_main
            .iter()
            .all(|request| !request.conversation.has_text("ccswitch:"))
    );
    assert_eq!((after.pid, &after.session_id), (before.pid, &sid));
    assert_eq!(suite.flips(), Vec::<serde_json::Value>::new());
    assert_eq!(suite.account_of("default"), "A");
    assert_eq!(suite.episodes(&sid), Vec::<serde_json::Value>::new());
    assert!(suite.signal(&sid, "walled-heal").is_none());
    assert!(suite.pool()["accounts"]["B"].is_null(), "{}", suite.pool());
}
