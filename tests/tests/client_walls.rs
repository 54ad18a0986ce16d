//! The main job on the real client: a session at its account's limit goes on by
//! itself on another account, or waits and goes on when its own has room again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::Duration;

use serde_json::json;
use tests::client::{Background, Client, Home, NO_QUESTIONS, PATIENCE, Pane, StreamJson, Tmux, wait_until};
use tests::login::Login;
use tests::mock_api::{MockApi, Request, Step, Window, in_seconds};
use tests::suite::Suite;

const DONE: &str = "all done on the other account";

/// A tool call, then the wall, for as long as the account is asked.
fn wall_in_a_tool_loop(api: &MockApi, window: Window, seconds: u64) {
    let reset = in_seconds(seconds);
    // The client holds its dialog back from a person who has just typed: the wall
    // comes when the prompt is some seconds old, as it does at night.
    let wall = Step::wall(window, reset)
        .until(reset)
        .delay(Duration::from_secs(3));
    api.account(
        "A",
        [Step::bash("echo from-the-tool"), wall],
        Step::text("A again"),
    );
    api.account("B", [], Step::text(DONE));
}

/// The refused request and the one that went on carry the same conversation.
fn assert_went_on(requests: &[Request]) {
    let [.., refused, on] = requests else {
        panic!("{requests:?}")
    };
    assert_eq!((refused.account.as_str(), refused.status), ("A", 429));
    assert_eq!((on.account.as_str(), on.status), ("B", 200));
    assert!(on.conversation.continues(&refused.conversation));
    assert!(on.conversation.is_complete());
    assert!(on.conversation.has_tool_result("from-the-tool"));
}

/// The 5-hour wall in the middle of a tool loop: the next request carries B; the
/// process and the conversation are the same. After the reset the client's own
/// continuation, which stays armed, is stopped: still exactly one.
#[test]
fn a_five_hour_wall_is_one_continuation_on_the_other_account() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::FiveHour, 15);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);

    assert_went_on(&api.wait_main(3, PATIENCE));
    let after = home.wait_session("idle", PATIENCE);
    assert_eq!((before.pid, &before.session_id), (after.pid, &after.session_id));
    assert_eq!(suite.flips().len(), 1);
    assert_eq!(suite.account_of("default"), "B");

    // The client's own continuation comes 75 to over 104 s after the reset.
    suite.wait_event(&after.session_id, "native-stopped", 1, Duration::from_secs(200));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(api.main_requests().len(), 3, "{}", api.describe());
    assert_eq!(
        suite
            .events(&after.session_id)
            .iter()
            .filter(|event| *event == "injected")
            .count(),
        1
    );
}

/// The weekly wall in a terminal: goes on on B, no dialog, no key sent. A reset
/// within a day is what the client itself would wait for, so it opens none.
#[test]
fn a_weekly_wall_goes_on_without_a_dialog() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::SevenDay, 20 * 3600);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    assert_went_on(&api.wait_main(3, PATIENCE));
    assert!(suite.signal(&sid, "walled-heal").is_none(), "{}", suite.log(&sid));
}

/// A reset more than a day away opens the client's dialog however quick the wake
/// is, unless a person types just then: nothing is typed into it, the wake stays
/// queued, a signal tells; when a person closes the dialog it goes on.
#[test]
fn a_dialog_that_came_first_is_left_to_the_person() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::SevenDay, 3 * 86_400);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id;
    terminal.prompt("please do it");
    suite.wait_outcome(&sid, "woken", PATIENCE);
    let is_told = || {
        suite
            .signal(&sid, "walled-heal")
            .is_some_and(|told| told["state"] == "dialog-open")
    };
    assert!(wait_until(PATIENCE, is_told), "{}", suite.log(&sid));
    assert!(
        terminal.screen().contains("What do you want to do?"),
        "{}",
        terminal.screen()
    );
    assert_eq!(api.main_requests().len(), 2, "{}", api.describe());

    terminal.key("Escape");
    terminal.wait_for(DONE, PATIENCE);
    assert_went_on(&api.wait_main(3, PATIENCE));
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
    let is_over = || suite.signal(&sid, "walled-heal").is_none();
    assert!(wait_until(PATIENCE, is_over), "what the signal said is over");
}

/// Nobody closes the dialog: after its grace the session is restarted as itself on
/// the other account, for a shell in the pane and for the client as its command.
#[test]
fn a_dialog_that_nobody_closes_is_passed_by_a_restart() {
    let Some(client) = Client::find() else { return };
    for pane in [Pane::Shell, Pane::Client] {
        let api = MockApi::start();
        let home = Home::new(&client, &api, &Login::new("A"));
        let suite = Suite::install(&home);
        suite.add_account("B");
        suite.configure(&json!({ "dialog_grace_s": 3 }));
        wall_in_a_tool_loop(&api, Window::SevenDay, 3 * 86_400);

        let terminal = Tmux::start(&home, pane, &[NO_QUESTIONS]);
        let before = home.wait_session("idle", PATIENCE);
        terminal.prompt("please do it");
        terminal.wait_for("What do you want to do?", PATIENCE);
        suite.wait_outcome(&before.session_id, "restarted", PATIENCE);
        terminal.wait_for(DONE, PATIENCE);

        let after = home.wait_session("idle", PATIENCE);
        assert_eq!(after.session_id, before.session_id);
        assert_ne!(after.pid, before.pid);
        let requests = api.wait_main(3, PATIENCE);
        assert_eq!(requests[2].account, "B");
        assert!(requests[2].conversation.has_tool_result("from-the-tool"));
        assert_eq!(home.transcript_paths().len(), 1);
        assert_eq!(api.main_requests().len(), 3, "{}", api.describe());
    }
}

/// A background session goes on too, and is on B still after a stop and a respawn.
#[test]
fn a_background_session_moves_and_stays_moved() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::SevenDay, 3 * 86_400);

    let background = Background::start(&home, &[NO_QUESTIONS], "please do it");
    assert_went_on(&api.wait_main(3, PATIENCE));
    let session = background.wait_session("idle", PATIENCE);
    suite.wait_event(&session.session_id, "stop", 1, PATIENCE);
    background.stop();
    let again = background.respawn();
    assert_eq!(again.session_id, session.session_id);
    assert_ne!(again.pid, session.pid);
    suite.wait_event(&session.session_id, "start", 2, PATIENCE);
    let lease = suite.lease(&session.session_id);
    let start = lease.iter().rfind(|line| line["event"] == "start").unwrap();
    assert_eq!(
        (&start["host"]["shard"], &start["host"]["account"]),
        (&json!("default"), &json!("B"))
    );
    assert_eq!(start["host"]["kind"], "background");
}

/// A session that a program drives over stream-json.
#[test]
fn a_stream_json_session_moves() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::FiveHour, 3 * 3600);

    let mut session = StreamJson::start(&home, &[NO_QUESTIONS]);
    session.send("please do it");
    let results = session.wait_results(2, PATIENCE);
    assert!(results.last().unwrap().contains(DONE), "{results:?}");
    assert_went_on(&api.wait_main(3, PATIENCE));
    assert_eq!(suite.account_of("default"), "B");
}

/// A one-shot run can't be waked: the account is left, so that the script's next
/// run has the other one.
#[test]
fn a_one_shot_run_leaves_the_account_for_the_next() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    wall_in_a_tool_loop(&api, Window::FiveHour, 3 * 3600);

    let first = home.run_claude(&["-p", "please do it", NO_QUESTIONS], PATIENCE);
    assert_eq!(first.code, Some(1), "{first:?}");
    assert!(wait_until(PATIENCE, || suite.account_of("default") == "B"));
    let second = home.run_claude(&["-p", "please do it", NO_QUESTIONS], PATIENCE);
    assert!(second.stdout.contains(DONE), "{second:?}");
}

/// All accounts walled: parked, and at the reset exactly one continuation.
fn parked_until_the_reset(api: &MockApi, suite: &Suite, sid: &str, requests: usize) {
    suite.wait_intent(sid, "park", PATIENCE);
    assert_eq!(suite.signal(sid, "walled-heal").unwrap()["state"], "parked");
    api.wait_main(requests + 1, Duration::from_mins(3));
    suite.wait_event(sid, "stop", 1, PATIENCE);
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(api.main_requests().len(), requests + 1, "{}", api.describe());
}

fn all_walled(api: &MockApi, suite: &Suite, window: Window, seconds: u64) {
    suite.add_account("B");
    // The client's own continuation needs 75 s and more: ours is before it here.
    suite.configure(&json!({ "park_margin_s": 5 }));
    let reset = in_seconds(seconds);
    for account in ["A", "B"] {
        api.account(
            account,
            [Step::wall(window, reset).until(reset)],
            Step::text(DONE),
        );
    }
}

#[test]
fn all_walled_in_a_terminal_is_parked_until_the_reset() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    all_walled(&api, &suite, Window::FiveHour, 25);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    parked_until_the_reset(&api, &suite, &sid, 2);
    terminal.wait_for(DONE, PATIENCE);
    // Some 80 s later the client wants to continue too, and is stopped.
    suite.wait_event(&sid, "native-stopped", 1, Duration::from_secs(200));
    assert_eq!(api.main_requests().len(), 3, "{}", api.describe());
}

#[test]
fn all_walled_in_the_background_is_parked_until_the_reset() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    all_walled(&api, &suite, Window::SevenDay, 25);

    let background = Background::start(&home, &[NO_QUESTIONS], "please do it");
    api.wait_main(2, PATIENCE);
    let sid = background.wait_session("idle", PATIENCE).session_id;
    parked_until_the_reset(&api, &suite, &sid, 2);
}

/// An account that frees in the meantime ends the wait.
#[test]
fn a_new_account_ends_the_wait() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    wall_in_a_tool_loop(&api, Window::FiveHour, 3 * 3600);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    suite.wait_intent(&sid, "park", PATIENCE);
    suite.add_account("B");
    terminal.wait_for(DONE, PATIENCE);
    assert_went_on(&api.wait_main(3, PATIENCE));
}

/// A dead login is left for a living one, and the person is told once.
#[test]
fn a_dead_login_is_left() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    let revoked = Step::fail(tests::mock_api::Failure::token_revoked());
    api.account("A", [], revoked);
    api.account("B", [], Step::text(DONE));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    terminal.prompt("please do it");
    terminal.wait_for(DONE, PATIENCE);
    assert_eq!(suite.account_of("default"), "B");
    assert!(
        suite.pool()["accounts"]["A"]["needs_login_at"].is_i64(),
        "{}",
        suite.pool()
    );
    assert_eq!(suite.flips()[0]["cause"], "dead-login");
    assert!(
        suite.log(&sid).contains("signal needs-login"),
        "{}",
        suite.log(&sid)
    );
}
