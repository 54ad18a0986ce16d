//! The client with its own number of retries: the other tests allow it none, so
//! that each failure shows at once. A person's client has ten.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux};
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Step, Window, in_seconds};
use tests::suite::Suite;

/// One short outage, which the client's own retry heals, and a wall, which it does
/// not retry: the suite leaves the first alone and moves at the second.
#[test]
fn with_the_clients_own_retries_only_the_wall_is_healed() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let mut home = Home::new(&client, &api, &Login::new("A"));
    home.unset("CLAUDE_CODE_MAX_RETRIES");
    let suite = Suite::install(&home);
    suite.add_account("B");
    api.account(
        "A",
        [
            Step::fail(Failure::overloaded()).times(2),
            Step::bash("echo from-the-tool"),
        ],
        Step::wall(Window::FiveHour, in_seconds(3 * 3600)),
    );
    api.account("B", [], Step::text("all done on the other account"));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id;
    terminal.prompt("please do it");
    terminal.wait_for("all done on the other account", PATIENCE);
    suite.wait_event(&sid, "stop", 1, PATIENCE);

    let requests = api.main_requests();
    let seen: Vec<(&str, u16, u32)> = requests
        .iter()
        .map(|request| (request.account.as_str(), request.status, request.retry))
        .collect();
    assert_eq!(
        seen.iter()
            .map(|(account, status, _)| (*account, *status))
            .collect::<Vec<_>>(),
        [("A", 529), ("A", 529), ("A", 200), ("A", 429), ("B", 200)],
        "{}",
        api.describe()
    );
    assert!(requests[4].conversation.continues(&requests[3].conversation));
    assert_eq!(suite.flips().len(), 1);
    let episodes = suite.episodes(&sid);
    assert_eq!(episodes.len(), 1, "{episodes:?}");
    assert_eq!(episodes[0]["outcome"], "woken");
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
}
