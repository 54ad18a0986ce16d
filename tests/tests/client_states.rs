//! The states of a session that the suite must leave alone or read right, each
//! brought about on the real client. Other tests build on these recipes.

#![allow(clippy::indexing_slicing, reason = "a missing element is the test's failure")]

use serde_json::{Value, json};
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Recorder, StreamJson, Tmux};
use tests::login::Login;
use tests::mock_api::{MockApi, Step};

/// A session in a terminal that was asked to do this first step.
fn waiting_session(client: &Client, flags: &[&str], step: Step, shown: &str) {
    let api = MockApi::start();
    let home = Home::new(client, &api, &Login::new("A"));
    api.account("A", [step], Step::text("went on"));
    let terminal = Tmux::start(&home, Pane::Shell, flags);
    terminal.prompt("please do it");
    let session = home.wait_session("waiting", PATIENCE);
    let screen = terminal.wait_for(shown, PATIENCE);
    assert!(!session.waiting_for.is_empty(), "{session:?}\n{screen}");
    assert_eq!(api.main_requests().len(), 1, "{}", api.describe());
}

#[test]
fn a_permission_prompt_waits_for_a_person() {
    let Some(client) = Client::find() else { return };
    let step = Step::bash("touch made-by-the-test");
    let flags = ["--permission-mode", "default"];
    waiting_session(&client, &flags, step, "Do you want to");
}

#[test]
fn a_question_waits_for_a_person() {
    let Some(client) = Client::find() else { return };
    let question = json!({ "questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [
            { "label": "Red", "description": "warm" },
            { "label": "Blue", "description": "cold" }
        ]
    }] });
    let step = Step::tool("AskUserQuestion", question);
    waiting_session(&client, &[NO_QUESTIONS], step, "Which colour?");
}

#[test]
fn a_plan_waits_for_a_person() {
    let Some(client) = Client::find() else { return };
    let step = Step::tool("ExitPlanMode", json!({ "plan": "1. Paint it blue." }));
    let flags = ["--permission-mode", "plan"];
    waiting_session(&client, &flags, step, "Exit plan mode?");
}

/// The payload of the first Stop of a stream-json session that did this step.
fn stop_after(client: &Client, step: Step) -> Value {
    let api = MockApi::start();
    let home = Home::new(client, &api, &Login::new("A"));
    let recorder = Recorder::install(&home);
    home.write_settings(&json!({ "hooks": recorder.hooks(&["Stop"]) }));
    api.account("A", [step], Step::text("all done"));
    let mut session = StreamJson::start(&home, &[]);
    session.send("please do it");
    recorder.wait("Stop", 1, PATIENCE)[0].payload.clone()
}

#[test]
fn a_running_background_task_shows_at_the_stop() {
    let Some(client) = Client::find() else { return };
    let command = json!({
        "command": "sleep 60", "description": "a long wait", "run_in_background": true
    });
    let stop = stop_after(&client, Step::tool("Bash", command));
    assert_eq!(stop["background_tasks"][0]["status"], "running", "{stop}");
}

#[test]
fn an_armed_cron_shows_at_the_stop() {
    let Some(client) = Client::find() else { return };
    let cron = json!({ "cron": "0 3 * * *", "prompt": "look again", "recurring": false });
    let stop = stop_after(&client, Step::tool("CronCreate", cron));
    assert_eq!(stop["session_crons"][0]["prompt"], "look again", "{stop}");
}

#[test]
fn half_typed_text_stays_in_the_composer() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    terminal.type_text("half a thou");
    terminal.wait_for("half a thou", PATIENCE);
    assert!(api.main_requests().is_empty(), "{}", api.describe());
}
