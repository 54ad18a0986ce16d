//! A session with a goal on the real client: held once with the ways out, let go
//! where something will bring it on, and no other session is held for it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::Duration;

use serde_json::json;
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, wait_for};
use tests::login::Login;
use tests::mock_api::{MockApi, Step};
use tests::suite::Suite;

/// Long enough for a second hold to show.
const QUIET: Duration = Duration::from_secs(4);

/// What each hold begins with, as the session reads it.
const HOLD: &str = "rungs: the goal of this session is still open";

fn set_goal(suite: &Suite, sid: &str) {
    suite.run("rungs", &["goal", "set", "ship it", "--sid", sid]);
}

/// How many holds the newest conversation has.
fn holds(api: &MockApi) -> usize {
    let last = api.main_requests().pop();
    last.map_or(0, |request| request.conversation.count_text(HOLD))
}

/// So many stops have gone by, and the session is quiet with so many requests.
/// (Its status does not tell: with a running background task it is not `idle`.)
fn assert_rests(api: &MockApi, suite: &Suite, sid: &str, stops: usize, requests: usize) {
    suite.wait_event(sid, "stop", stops, PATIENCE);
    std::thread::sleep(QUIET);
    let events = suite.events(sid);
    assert_eq!(
        events.iter().filter(|event| *event == "stop").count(),
        stops,
        "{events:?}"
    );
    assert_eq!(
        api.main_requests().len(),
        requests,
        "{}\n{}",
        api.describe(),
        suite.log(sid)
    );
}

/// One refusal with the ways out, then quiet, until a person writes.
#[test]
fn an_open_goal_holds_once_until_a_person_writes() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    api.account("A", [], Step::text("half of it is done"));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    set_goal(&suite, &sid);

    terminal.prompt("please do it");
    assert_rests(&api, &suite, &sid, 2, 2);
    let refusal = &api.main_requests()[1].conversation;
    assert_eq!(refusal.count_text(HOLD), 1);
    for way_out in [
        "ship it",
        "rungs goal done",
        "rungs goal pause",
        "WAITING ON <id>",
        "GOAL: m of m",
    ] {
        assert!(refusal.has_text(way_out), "{way_out}: {refusal:?}");
    }

    terminal.prompt("go on");
    assert_rests(&api, &suite, &sid, 4, 4);
    assert_eq!(holds(&api), 2);

    suite.run("rungs", &["goal", "done", "--sid", &sid]);
    terminal.prompt("and once more");
    assert_rests(&api, &suite, &sid, 5, 5);
}

/// A turn of these steps with an open goal is not held.
fn let_go(steps: Vec<Step>, last: &str, prepare: fn(&Suite, &str)) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    let requests = steps.len() + 1;
    api.account("A", steps, Step::text(last));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    prepare(&suite, &sid);
    terminal.prompt("please do it");
    terminal.wait_for(last.lines().next().unwrap(), PATIENCE);
    assert_rests(&api, &suite, &sid, 1, requests);
    assert_eq!(holds(&api), 0);
}

fn background_task() -> Step {
    let command = json!({
        "command": "sleep 600", "description": "a long wait", "run_in_background": true
    });
    Step::tool("Bash", command)
}

#[test]
fn a_running_background_task_lets_go() {
    let_go(vec![background_task()], "it runs", set_goal);
}

#[test]
fn an_armed_cron_lets_go() {
    let cron = json!({ "cron": "0 3 * * *", "prompt": "look again", "recurring": false });
    let_go(vec![Step::tool("CronCreate", cron)], "it is armed", set_goal);
}

#[test]
fn paused_lets_go() {
    let_go(vec![], "half of it is done", |suite, sid| {
        set_goal(suite, sid);
        let folder = suite.root().join("loop").join(&sid[..8]);
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("PAUSED"), "").unwrap();
    });
}

#[test]
fn without_a_goal_every_stop_goes_through() {
    let_go(vec![], "half of it is done", |_, _| {});
}

/// `WAITING ON` with the id of the task that runs parks; with the id of nothing
/// it is refused, in words.
#[test]
fn waiting_on_a_task_parks_and_on_nothing_does_not() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    api.account(
        "A",
        [
            Step::text("so I wait\nWAITING ON nothing-of-mine"),
            background_task(),
        ],
        Step::text("it runs"),
    );
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let sid = home.wait_session("idle", PATIENCE).session_id;
    set_goal(&suite, &sid);
    terminal.prompt("please do it");
    assert_rests(&api, &suite, &sid, 2, 3);
    let refused = &api.main_requests()[1].conversation;
    assert!(refused.has_text("`WAITING ON nothing-of-mine` names no running"));

    // The client names the task in the tool's result: a person's new prompt, and
    // the session says what it waits on.
    let last = api.main_requests().pop().unwrap().conversation;
    let id = last
        .0
        .iter()
        .flat_map(|message| &message.blocks)
        .find_map(|block| match block {
            tests::mock_api::Block::ToolResult { text, .. } => {
                let (_, rest) = text.split_once("with ID: ")?;
                Some(rest.split(['.', ' ']).next()?.to_owned())
            }
            _ => None,
        });
    let id = id.unwrap_or_else(|| panic!("{last:?}"));
    api.account("A", [], Step::text(&format!("it still runs\nWAITING ON {id}")));
    terminal.prompt("how is it going");
    assert_rests(&api, &suite, &sid, 3, 4);
}

/// The session states its own goal through its Bash tool; `/clear` leaves the
/// goal with the old session; another session's goal holds nobody else.
#[test]
fn a_goal_is_its_own_sessions_and_stays_with_it() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    let rungs = tests::executables::executable("rungs");
    let state_it = Step::bash(&format!("{} goal set 'ship it'", rungs.display()));
    api.account("A", [state_it], Step::text("half of it is done"));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let old = home.wait_session("idle", PATIENCE).session_id;
    let goal = suite.root().join(format!("goals/{old}.json"));
    terminal.prompt("please do it");
    assert_rests(&api, &suite, &old, 2, 3);
    assert_eq!(holds(&api), 1);
    let stated = fs_err::read(&goal).unwrap();
    assert!(
        String::from_utf8_lossy(&stated).contains(r#""set_by":"session""#),
        "{stated:?}"
    );

    terminal.prompt("/clear");
    let new = wait_for(PATIENCE, || {
        let session = home.sessions().pop()?;
        (session.session_id != old && session.status == "idle").then_some(session.session_id)
    });
    let new = new.unwrap_or_else(|| panic!("{:?}", home.sessions()));
    terminal.prompt("a new task");
    assert_rests(&api, &suite, &new, 1, 4);
    assert_eq!(holds(&api), 0);
    assert_eq!(fs_err::read(&goal).unwrap(), stated);
    assert!(!suite.root().join(format!("goals/{new}.json")).exists());
}
