//! The harness itself, shown on the real client: every way to run a session, the
//! failures that tests provoke, and a token refresh.

use std::time::Duration;

use serde_json::json;
use tests::client::{
    Background, Client, Home, NO_QUESTIONS, PATIENCE, Pane, Recorder, StreamJson, Tmux, alive, wait_until,
};
use tests::login::Login;
use tests::mock_api::{Kind, MockApi, Step, Window, in_seconds};
use tests::oauth_endpoint::OauthEndpoint;

/// A tool call, then a text.
fn tool_loop(api: &MockApi) {
    api.account("A", [Step::bash("echo from-the-tool")], Step::text("all done"));
}

#[test]
fn a_turn_in_a_terminal_goes_through_its_tools() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    tool_loop(&api);

    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    terminal.prompt("please do it");
    terminal.wait_for("all done", PATIENCE);

    let requests = api.wait_main(2, PATIENCE);
    assert_eq!(requests.len(), 2, "{}", api.describe());
    assert!(requests[1].conversation.continues(&requests[0].conversation));
    assert!(requests[1].conversation.is_complete());
    assert!(requests[1].conversation.has_tool_result("from-the-tool"));
    let session = home.wait_session("idle", PATIENCE);
    assert_eq!(requests[1].session, session.session_id);
    home.wait_answer(&session.session_id, "all done", PATIENCE);
}

#[test]
fn a_client_that_is_the_panes_own_command_ends_with_its_terminal() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));

    let terminal = Tmux::start(&home, Pane::Client, &[NO_QUESTIONS]);
    let pid = home.wait_session("idle", PATIENCE).pid;
    assert_eq!(terminal.pane("#{pane_pid}"), pid.to_string());
    drop(terminal);
    assert!(wait_until(PATIENCE, || !alive(pid)));
}

#[test]
fn the_walls_are_what_the_client_calls_walls() {
    let Some(client) = Client::find() else { return };
    for (window, sentence) in [
        (Window::FiveHour, "You've hit your 5-hour limit"),
        (Window::SevenDay, "You've hit your weekly limit"),
    ] {
        let api = MockApi::start();
        let home = Home::new(&client, &api, &Login::new("A"));
        let wall = Step::wall(window, in_seconds(3 * 3600));
        api.account("A", [Step::bash("echo one"), wall], Step::text("unreachable"));

        let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
        terminal.prompt("please do it");
        terminal.wait_for(sentence, PATIENCE);
        let session = &home.sessions()[0].session_id;
        let failures = home.wait_failures(session, 1, PATIENCE);
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0]["apiError"], "usage_limit_reached");
    }
}

#[test]
fn a_one_shot_session_prints_its_answer() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    tool_loop(&api);

    let output = home.run_claude(&["-p", "please do it", NO_QUESTIONS], PATIENCE);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout.trim(), "all done");
    assert_eq!(api.main_requests().len(), 2, "{}", api.describe());
}

#[test]
fn a_stream_json_session_answers_and_can_be_waked() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let recorder = Recorder::install(&home);
    let mut hooks = recorder.hooks(&["UserPromptSubmit", "Stop"]);
    hooks["StopFailure"] = json!([recorder.waking_group(0.0, 2, "go on, please")]);
    home.write_settings(&json!({ "hooks": hooks }));
    let wall = Step::wall(Window::FiveHour, in_seconds(3600)).times(1);
    api.account("A", [Step::bash("echo one"), wall], Step::text("all done"));

    let mut session = StreamJson::start(&home, &[]);
    session.send("please do it");
    let results = session.wait_results(2, PATIENCE);
    assert!(results[0].contains("5-hour limit"), "{results:?}");
    assert_eq!(results[1], "all done");

    let requests = api.main_requests();
    assert_eq!(requests.len(), 3, "{}", api.describe());
    assert!(requests[2].conversation.continues(&requests[1].conversation));
    assert!(requests[2].conversation.has_text("go on, please"));
    let failure = &recorder.wait("StopFailure", 1, PATIENCE)[0];
    assert_eq!(failure.client_pid, session.pid().to_string());
    let prompts = recorder.wait("UserPromptSubmit", 2, PATIENCE);
    let wake = prompts[1].payload["prompt"].as_str().unwrap();
    assert!(wake.starts_with("<task-notification>"), "{wake}");
    assert!(session.finish(PATIENCE));
}

#[test]
fn a_background_session_survives_stop_and_respawn() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    tool_loop(&api);

    let background = Background::start(&home, &[], "please do it");
    api.wait_main(2, PATIENCE);
    let first = background.wait_session("idle", PATIENCE);
    assert_eq!(first.kind, "bg");
    assert_eq!(background.row().unwrap()["sessionId"], first.session_id.as_str());
    background.stop();
    assert!(!alive(first.pid));
    let second = background.respawn();
    assert_eq!(second.session_id, first.session_id);
    assert_ne!(second.pid, first.pid);
}

#[test]
fn a_home_takes_its_processes_with_it() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let background = Background::start(&home, &[], "please do it");
    let pid = background.wait_session("idle", PATIENCE).pid;
    drop(home);
    assert!(!alive(pid));
}

#[test]
fn an_expiring_token_is_refreshed_once() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let login = Login::new("A").expiring_in(Duration::from_mins(1));
    let mut home = Home::new(&client, &api, &login);
    let endpoint = OauthEndpoint::start(home.path());
    for (name, value) in endpoint.environment() {
        home.set(name, &value);
    }

    let output = home.run_claude(&["-p", "hello"], PATIENCE);
    assert_eq!(output.stdout.trim(), "mock answer", "{output:?}");
    let refreshes = endpoint.refreshes();
    assert_eq!(refreshes.len(), 1, "{refreshes:?}");
    assert_eq!((refreshes[0].account.as_str(), refreshes[0].generation), ("A", 0));
    assert!(refreshes[0].answered_at.is_some() && !refreshes[0].reused);
    assert_eq!(Login::read(&home.config()).unwrap().generation, 1);
    let main = api.main_requests();
    assert_eq!(
        main[0].credential,
        Login {
            generation: 1,
            ..login
        }
        .access_token()
    );
    assert!(main.iter().all(|request| request.kind == Kind::Main));
}

#[test]
fn a_sub_agents_requests_are_told_apart_by_their_prompt() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let delegate = Step::tool(
        "Agent",
        json!({ "description": "look", "prompt": "SUB-TASK: look around",
            "subagent_type": "general-purpose", "run_in_background": false }),
    );
    api.account("A", [delegate], Step::text("all done"));
    api.prompt("SUB-TASK", [], Step::text("seen it"));

    let output = home.run_claude(&["-p", "please do it", NO_QUESTIONS], PATIENCE);
    assert_eq!(output.stdout.trim(), "all done", "{output:?}\n{}", api.describe());
    let requests = api.main_requests();
    let prompts = requests.iter().map(|request| request.conversation.first_prompt());
    let of_sub_agent = prompts.filter(|prompt| prompt.contains("SUB-TASK")).count();
    assert_eq!((requests.len(), of_sub_agent), (3, 1), "{}", api.describe());
    assert!(requests[2].conversation.has_tool_result("seen it"));
}

#[test]
fn broken_connections_look_broken_to_the_client() {
    let Some(client) = Client::find() else { return };
    for step in [Step::reset(), Step::cut()] {
        let api = MockApi::start();
        let home = Home::new(&client, &api, &Login::new("A"));
        api.account("A", [], step);
        let output = home.run_claude(&["-p", "please do it", NO_QUESTIONS], PATIENCE);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stdout.contains("Connection dropped"), "{output:?}");
    }
}

#[test]
fn the_next_request_carries_the_login_that_is_on_disk() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let mut session = StreamJson::start(&home, &[]);
    session.send("one");
    session.wait_results(1, PATIENCE);
    Login::new("B").write(&home.config());
    session.send("two");
    session.wait_results(2, PATIENCE);
    let accounts: Vec<String> = api
        .main_requests()
        .into_iter()
        .map(|request| request.account)
        .collect();
    assert_eq!(accounts, ["A", "B"]);
}
