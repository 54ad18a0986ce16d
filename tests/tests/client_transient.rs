//! A service that fails for a while, on the real client: the session waits and
//! goes on where it is. Nothing moves, nothing is marked, nothing is restarted.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::Duration;

use serde_json::{Value, json};
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, wait_for};
use tests::files::read_json;
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Request, Step};
use tests::suite::Suite;

const DONE: &str = "all done after the outage";

/// Waits until the session waits for its try of this number since the last turn
/// that ended well.
fn wait_try(suite: &Suite, sid: &str, number: usize) -> Value {
    let is_it = |episode: &Value| {
        let plan = episode["why"].as_str().unwrap_or("");
        episode["outcome"].is_null() && plan.contains(&format!("; try {number}: due in "))
    };
    let found = wait_for(PATIENCE, || suite.episodes(sid).into_iter().find(is_it));
    found.unwrap_or_else(|| {
        let episodes = suite.episodes(sid);
        panic!("no wait for try {number}: {episodes:?}\n{}", suite.log(sid))
    })
}

/// How long each wait lasted that ended in a wake, in ms, oldest first.
fn waits_ms(suite: &Suite, sid: &str) -> Vec<i64> {
    let episodes = suite.episodes(sid).into_iter();
    let woken = episodes.filter(|episode| episode["outcome"] == "woken");
    woken
        .map(|episode| episode["done_at"].as_i64().unwrap() - episode["claimed_at"].as_i64().unwrap())
        .collect()
}

/// Neither a flip nor a mark on an account, a restart, a signal.
fn assert_nothing_but_waits(api: &MockApi, suite: &Suite, sid: &str) {
    assert!(suite.flips().is_empty(), "{:?}", suite.flips());
    assert_eq!(suite.account_of("default"), "A");
    assert!(
        suite.pool()["accounts"]["A"].as_object().is_none_or(|account| {
            account["needs_login_at"].is_null()
                && account["walls"].as_object().is_none_or(serde_json::Map::is_empty)
        }),
        "{}",
        suite.pool()
    );
    let accounts = api.main_requests();
    assert!(
        accounts.iter().all(|request| request.account == "A"),
        "{}",
        api.describe()
    );
    let wedge = read_json(&suite.root().join(format!("session/{sid}/wedge.json"))).unwrap();
    assert!(wedge["restarts"].as_array().is_none_or(Vec::is_empty), "{wedge}");
    for rung in ["wedge-heal", "walled-heal"] {
        assert_eq!(suite.signal(sid, rung), None);
    }
}

/// Two failed turns, then the service is back; then one more failure, which is
/// the first of a new count.
fn waited_out(failing: Step, owner: &str) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    suite.configure(&json!({ "backoff_s_min": 2, "backoff_s_max": 60 }));
    api.account("A", [Step::bash("echo from-the-tool")], failing.clone());
    api.account("B", [], Step::text("B was asked"));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id.as_str();
    terminal.prompt("please do it");
    assert_eq!(wait_try(&suite, sid, 1)["actor"], owner);
    wait_try(&suite, sid, 2);
    api.account("A", [], Step::text(DONE));
    terminal.wait_for(DONE, PATIENCE);

    let last = api.main_requests().pop().unwrap();
    assert!(last.conversation.has_tool_result("from-the-tool"));
    assert!(last.conversation.is_complete());
    let waits = waits_ms(&suite, sid);
    assert_eq!(waits.len(), 2, "{}", suite.log(sid));
    assert!(waits[0] >= 2000 && waits[1] >= 4000, "{waits:?}");
    suite.wait_event(sid, "stop", 1, PATIENCE);

    api.account("A", [], failing);
    terminal.prompt("and now the next thing");
    wait_try(&suite, sid, 1);
    api.account("A", [], Step::text("the next thing is done too"));
    terminal.wait_for("the next thing is done too", PATIENCE);
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
    let answered = api.main_requests().len();
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(api.main_requests().len(), answered, "{}", api.describe());
    assert_nothing_but_waits(&api, &suite, sid);
}

#[test]
fn a_throttle_is_waited_out_and_is_no_wall() {
    waited_out(Step::fail(Failure::throttle()), "walled-heal");
}

#[test]
fn an_overloaded_service_is_waited_out() {
    waited_out(Step::fail(Failure::overloaded()), "wedge-heal");
}

#[test]
fn a_failing_service_is_waited_out() {
    waited_out(Step::fail(Failure::internal()), "wedge-heal");
}

#[test]
fn a_reset_connection_is_waited_out() {
    waited_out(Step::reset(), "wedge-heal");
}

/// An outage that lasts: each wait is longer than the one before, up to the
/// longest, and none of them is the last.
#[test]
fn a_lasting_outage_is_tried_more_and_more_seldom() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.add_account("B");
    suite.configure(&json!({ "backoff_s_min": 1, "backoff_s_max": 9 }));
    api.account("A", [], Step::fail(Failure::overloaded()));

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let before = home.wait_session("idle", PATIENCE);
    let sid = before.session_id.as_str();
    terminal.prompt("please do it");
    wait_try(&suite, sid, 6);

    // Steps of 1, 2, 4 s, then 6 s, which is two thirds of the longest wait; each
    // with up to a half of it added. The last second is for a busy machine.
    let waits = waits_ms(&suite, sid);
    let bounds = [
        (1000, 1500),
        (2000, 3000),
        (4000, 6000),
        (6000, 9000),
        (6000, 9000),
    ];
    assert_eq!(waits.len(), bounds.len(), "{waits:?}");
    for (wait, (least, most)) in waits.iter().zip(bounds) {
        assert!((least..most + 1000).contains(wait), "{waits:?}");
    }
    assert_eq!(api.main_requests().len(), 6, "{}", api.describe());
    assert_eq!(home.wait_session("idle", PATIENCE).pid, before.pid);
    assert_nothing_but_waits(&api, &suite, sid);
}

/// Two sessions in one outage: one tries first, the other waits for what becomes
/// of its turn, though its own time has come.
#[test]
fn one_session_tries_first_and_the_other_waits_for_it() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.configure(&json!({ "backoff_s_min": 4, "backoff_s_max": 120 }));
    // Longer than any first wait, so that the other's time comes during it.
    let turn = Duration::from_secs(12);
    for part in ["alpha", "beta"] {
        let slow = Step::text(DONE).delay(turn);
        api.prompt(
            part,
            [Step::fail(Failure::overloaded()), slow],
            Step::text("more"),
        );
    }

    let alpha = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let beta = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    alpha.prompt("do alpha");
    beta.prompt("do beta");
    alpha.wait_for(DONE, PATIENCE);
    beta.wait_for(DONE, PATIENCE);

    let requests = api.main_requests();
    let woken: Vec<&Request> = requests.iter().filter(|request| request.status == 200).collect();
    assert_eq!((requests.len(), woken.len()), (4, 2), "{}", api.describe());
    let gap = woken[1].at.duration_since(woken[0].at).unwrap();
    assert!(gap >= turn, "the second did not wait for the first: {gap:?}");
    assert!(
        gap < turn + Duration::from_secs(4 + 6),
        "the second was not told: {gap:?}"
    );
    let how = |request: &Request| {
        let episode = suite.wait_outcome(&request.session, "woken", PATIENCE);
        episode["why"].as_str().unwrap().to_owned()
    };
    assert!(
        how(woken[0]).contains("woken as the first to try"),
        "{}",
        how(woken[0])
    );
    assert!(!how(woken[1]).contains("as the first"), "{}", how(woken[1]));
    assert_ne!(woken[0].session, woken[1].session);
}
