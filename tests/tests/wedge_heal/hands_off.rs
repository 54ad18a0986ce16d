//! Everything that is not to be acted on, and what is only handed up.

use serde_json::{Value, json};

use crate::stage::{SID, Stage, assert_silent, feed, now_ms, wait_until};

const TOO_LONG: &str = "Prompt is too long";

#[test]
fn what_is_not_its_business_is_left_alone() {
    type Change = fn(&Stage, &mut Value);
    let cases: [(&str, Change); 9] = [
        ("a wall", |_, payload| {
            payload["error"] = json!("rate_limit");
        }),
        ("a login", |_, payload| {
            payload["error"] = json!("authentication_failed");
        }),
        ("a sub-agent", |_, payload| {
            payload["agent_id"] = json!("a1");
        }),
        ("a good stop", |_, payload| {
            payload["hook_event_name"] = json!("Stop");
        }),
        ("no prompt id", |_, payload| {
            payload["prompt_id"] = Value::Null;
        }),
        ("a prompt id that is a path", |_, payload| {
            payload["prompt_id"] = json!("../../x");
        }),
        ("unknown", |stage, payload| {
            stage.write_failed_turn("unknown", "Something never seen");
            payload["error"] = json!("unknown");
            payload["last_assistant_message"] = json!("Something never seen");
        }),
        ("paused", |stage, _| stage.state("loop/42c4d508/PAUSED", "")),
        ("held", |stage, _| stage.state(&format!("session/{SID}/held"), "")),
    ];
    for (name, change) in cases {
        let stage = Stage::new();
        stage.write_failed_turn("invalid_request", TOO_LONG);
        let client = stage.idle_client();
        let mut payload = stage.payload("invalid_request", TOO_LONG);
        change(&stage, &mut payload);
        assert_silent(&stage.run(client.0.id(), &payload));
        assert!(stage.episode().is_null(), "{name} was claimed: {}", stage.log());
        assert!(stage.signal().is_null(), "{name} was signalled");
    }
}

#[test]
fn what_nothing_here_heals_is_handed_up_once() {
    let stage = Stage::new();
    let text = "API Error: 400 messages.3.content.1: image exceeds 5 MB maximum";
    stage.write_failed_turn("invalid_request", text);
    stage.config(&json!({"notify": ["/bin/sh", "-c", "echo told >> \"$0.told\""]}));
    let client = stage.idle_client();
    let mut payload = stage.payload("invalid_request", text);
    assert_silent(&stage.run(client.0.id(), &payload));
    let signal = stage.signal();
    assert_eq!(signal["state"], "needs-person");
    assert!(signal["person"].as_str().is_some_and(|person| !person.is_empty()));
    payload["prompt_id"] = json!("second");
    assert_silent(&stage.run(client.0.id(), &payload));
    assert_eq!(stage.signal(), signal, "the same state is not told again");
    let told = stage.root().join(format!("signals/{SID}.wedge-heal.json.told"));
    assert!(wait_until(|| told.exists()), "the configured command was run");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "told\n", "and once");
}

#[test]
fn the_fourth_restart_of_a_day_is_refused_and_told_once() {
    let stage = Stage::new();
    stage.write_failed_turn("invalid_request", TOO_LONG);
    let now = now_ms();
    let spent = json!({"format":1,"restarts":[now - 30_000, now - 20_000, now - 10_000],"theirs":1});
    stage.state(&format!("session/{SID}/wedge.json"), &spent.to_string());
    let client = stage.idle_client();
    let mut payload = stage.payload("invalid_request", TOO_LONG);
    assert_silent(&stage.run(client.0.id(), &payload));
    let signal = stage.signal();
    assert_eq!(signal["state"], "exhausted");
    assert_eq!(signal["tried"].as_array().map(Vec::len), Some(3));
    payload["prompt_id"] = json!("second");
    assert_silent(&stage.run(client.0.id(), &payload));
    assert_eq!(stage.signal(), signal);
    assert!(stage.intent().is_null());
    let kept = stage.json(&format!("session/{SID}/wedge.json"));
    assert_eq!(
        (&kept["restarts"], &kept["theirs"]),
        (&spent["restarts"], &spent["theirs"])
    );
}

#[test]
fn without_a_pane_of_its_own_the_person_gets_the_command() {
    let stage = Stage::new();
    stage.write_failed_turn("invalid_request", TOO_LONG);
    let client = stage.idle_client();
    assert_silent(&stage.run(client.0.id(), &stage.payload("invalid_request", TOO_LONG)));
    let signal = stage.signal();
    assert_eq!(signal["state"], "needs-person");
    assert!(signal["why"].as_str().unwrap().contains("tmux"), "{signal}");
    assert_eq!(stage.episode()["outcome"], "signalled");
}

#[test]
fn explain_tells_and_does_nothing() {
    let stage = Stage::new();
    stage.write_failed_turn("invalid_request", TOO_LONG);
    let client = stage.idle_client();
    let mut child = stage.hook(client.0.id(), &["--explain"]).spawn().unwrap();
    feed(
        &mut child,
        stage.payload("invalid_request", TOO_LONG).to_string().as_bytes(),
    );
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["verdict"], "wedge");
    assert_eq!(
        told["decision"],
        json!({"act": "signal", "state": "needs-person"})
    );
    assert!(told["command"].as_str().unwrap().contains(SID));
    let left: Vec<_> = std::fs::read_dir(stage.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["config.json"]);
}

#[test]
fn bad_input_never_costs_the_turn() {
    type Plant = fn(&std::path::Path);

    let stage = Stage::new();
    let client = stage.idle_client();
    let payloads: [&[u8]; 6] = [
        b"",
        b"[]",
        b"{\"session_id\":",
        b"\xff\xfe",
        b"{\"session_id\":\"../x\"}",
        b"{\"session_id\":1}",
    ];
    for bytes in payloads {
        let mut child = stage.hook(client.0.id(), &[]).spawn().unwrap();
        feed(&mut child, bytes);
        assert_silent(&child.wait_with_output().unwrap());
    }
    let transcripts: [(&str, Plant); 4] = [
        ("missing", |_| ()),
        ("a folder", |path| std::fs::create_dir(path).unwrap()),
        ("a fifo", |path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }),
        ("a huge torn line", |path| {
            std::fs::write(
                path,
                format!("{{\"type\":\"user\",\"x\":\"{}", "y".repeat(20 << 20)),
            )
            .unwrap();
        }),
    ];
    for (name, plant) in transcripts {
        let stage = Stage::new();
        let client = stage.idle_client();
        plant(&stage.transcript());
        assert_silent(&stage.run(client.0.id(), &stage.payload("invalid_request", TOO_LONG)));
        assert_eq!(
            stage.signal()["state"],
            "needs-person",
            "{name}: the payload told enough"
        );
    }
}
