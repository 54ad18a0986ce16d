//! A session on a shard of its own is moved alone.

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

/// A wall moves the own shard from A to B; the session on the default shard, which
/// is on A too, stays there.
#[test]
fn a_wall_on_an_own_shard_leaves_the_default_where_it_is() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    let shard = suite.root().join("shards/own");
    std::os::unix::fs::symlink("../accounts/A", &shard).unwrap();
    let wall = Step::wall(Window::FiveHour, in_seconds(3 * 3600)).times(1);
    api.prompt(
        "OWN-SHARD",
        [Step::bash("echo from-the-tool"), wall],
        Step::text("own is done"),
    );
    api.prompt("DEFAULT-SHARD", [], Step::text("default is done"));

    // Only the flag outranks the settings, which name the default shard.
    let settings = json!({ "env": { "CLAUDE_SECURESTORAGE_CONFIG_DIR": shard } }).to_string();
    let own = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS, "--settings", &settings]);
    let own_sid = home.wait_session("idle", PATIENCE).session_id;
    let default = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    own.prompt("OWN-SHARD: please do it");
    own.wait_for("own is done", PATIENCE);
    suite.wait_event(&own_sid, "stop", 1, PATIENCE);
    default.prompt("DEFAULT-SHARD: please do it");
    default.wait_for("default is done", PATIENCE);

    let requests = api.main_requests();
    let (of_own, of_default): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| request.session == own_sid);
    let seen: Vec<(&str, u16)> = of_own
        .iter()
        .map(|request| (request.account.as_str(), request.status))
        .collect();
    assert_eq!(seen, [("A", 200), ("A", 429), ("B", 200)], "{}", api.describe());
    assert!(of_own[2].conversation.continues(&of_own[1].conversation));
    assert_eq!(of_default.len(), 1, "{}", api.describe());
    assert_eq!((of_default[0].account.as_str(), of_default[0].status), ("A", 200));
    let flips = suite.flips();
    assert_eq!(flips.len(), 1, "{flips:?}");
    assert_eq!(
        (&flips[0]["shard"], &flips[0]["from"], &flips[0]["to"]),
        (&json!("own"), &json!("A"), &json!("B"))
    );
    assert_eq!(
        (suite.account_of("own"), suite.account_of("default")),
        ("B".into(), "A".into())
    );

    // The wall is the account's, whoever met it: nobody is moved to A now.
    let walled = || suite.pool()["accounts"]["A"]["walls"]["five_hour"].is_object();
    assert!(wait_until(PATIENCE, walled), "{}", suite.pool());
}
