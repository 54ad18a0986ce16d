//! Transient failures: the wait, the wake, and everything that calls it off.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::{PROMPT, SID, Stage, assert_silent, assert_woken, now_ms, wait_until};

const OVERLOADED: &str = "API Error: 529 Overloaded. This is a server-side issue.";

fn overloaded() -> Stage {
    let stage = Stage::new();
    stage.write_failed_turn("server_error", OVERLOADED);
    stage
}

#[test]
fn a_transient_failure_is_waited_out_and_woken() {
    let stage = overloaded();
    let client = stage.idle_client();
    let started = Instant::now();
    let output = stage.run(client.0.id(), &stage.payload("server_error", OVERLOADED));
    assert_woken(&output);
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "not before the first step"
    );
    assert_eq!(stage.episode()["outcome"], "woken");
    let wakes = |stage: &Stage| stage.json(&format!("session/{SID}/wedge.json"))["transient_wakes"].clone();
    assert_eq!(wakes(&stage).as_array().map(Vec::len), Some(1));

    // The next try waits longer; a turn that ended well clears the count.
    let mut next = stage.payload("server_error", OVERLOADED);
    next["prompt_id"] = json!("second");
    let started = Instant::now();
    assert_woken(&stage.run(client.0.id(), &next));
    assert!(started.elapsed() >= Duration::from_secs(2));
    stage.state(
        &format!("session/{SID}/lease.jsonl"),
        &format!("{{\"format\":1,\"at\":{},\"event\":\"stop\"}}\n", now_ms()),
    );
    next["prompt_id"] = json!("third");
    let started = Instant::now();
    assert_woken(&stage.run(client.0.id(), &next));
    assert!(
        started.elapsed() < Duration::from_millis(1950),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn what_happens_meanwhile_calls_the_wake_off() {
    type Meanwhile = fn(&Stage, u32);
    let lease = format!("session/{SID}/lease.jsonl");
    let cases: [(&str, Meanwhile); 9] = [
        ("off", |stage, _| stage.state("off", "")),
        ("PAUSED", |stage, _| stage.state("loop/42c4d508/PAUSED", "")),
        ("PAUSED with the original tools", |stage, _| {
            let marker = stage.claude().join("jobs/loop/42c4d508");
            std::fs::create_dir_all(&marker).unwrap();
            std::fs::write(marker.join("PAUSED"), "").unwrap();
        }),
        ("held", |stage, _| stage.state(&format!("session/{SID}/held"), "")),
        ("/clear", |stage, pid| {
            stage.register(pid, "another-session", "idle", None);
        }),
        ("a question", |stage, pid| {
            stage.register(pid, SID, "waiting", Some("permission prompt"));
        }),
        ("another turn, seen in no lease", |stage, pid| {
            std::fs::remove_file(stage.root().join(format!("session/{SID}/lease.jsonl"))).unwrap();
            let path = stage.claude().join(format!("sessions/{pid}.json"));
            let busy = json!({"sessionId":SID,"status":"busy","statusUpdatedAt":now_ms()});
            std::fs::write(path, busy.to_string()).unwrap();
        }),
        ("exit", |stage, pid| {
            std::fs::remove_file(stage.claude().join(format!("sessions/{pid}.json"))).unwrap();
        }),
        ("a typed prompt", |stage, _| {
            let line = format!(
                "{{\"format\":1,\"at\":{},\"event\":\"prompt\",\"prompt_id\":\"p9\"}}\n",
                now_ms()
            );
            stage.state(&format!("session/{SID}/lease.jsonl"), &line);
        }),
    ];
    for (name, meanwhile) in cases {
        let stage = overloaded();
        stage.config(&json!({"backoff_s_min": 3, "backoff_s_max": 9}));
        stage.state(
            &lease,
            "{\"format\":1,\"at\":1,\"event\":\"prompt\",\"prompt_id\":\"p1\"}\n",
        );
        let client = stage.idle_client();
        let hook = stage.start(client.0.id(), &stage.payload("server_error", OVERLOADED));
        assert!(wait_until(|| stage.episode()["intent"] == "wait"), "{name}");
        meanwhile(&stage, client.0.id());
        let output = hook.wait_with_output().unwrap();
        assert_silent(&output);
        assert_eq!(stage.episode()["outcome"], "stale", "{name}: {}", stage.log());
    }
}

#[test]
fn installed_twice_it_acts_once() {
    let stage = overloaded();
    let client = stage.idle_client();
    let payload = stage.payload("server_error", OVERLOADED);
    let hooks: Vec<_> = (0..4).map(|_| stage.start(client.0.id(), &payload)).collect();
    let codes: Vec<_> = hooks
        .into_iter()
        .map(|hook| hook.wait_with_output().unwrap().status.code().unwrap())
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == 2).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 3, "{codes:?}");
}

#[test]
fn one_session_tries_first_and_the_others_follow_its_good_turn() {
    let stage = overloaded();
    stage.config(&json!({"backoff_s_min": 1, "backoff_s_max": 60}));
    let client = stage.idle_client();
    let first = stage.run(client.0.id(), &stage.payload("server_error", OVERLOADED));
    assert_woken(&first);
    // Another session, whose turn failed as well.
    let other = stage.idle_client();
    stage.register(other.0.id(), "other-session", "idle", None);
    let mut payload = stage.payload("server_error", OVERLOADED);
    payload["session_id"] = json!("other-session");
    payload["transcript_path"] = json!(stage.claude().join("projects/p/other-session.jsonl"));
    let mut hook = stage.start(other.0.id(), &payload);
    std::thread::sleep(Duration::from_secs(3));
    assert!(
        hook.try_wait().unwrap().is_none(),
        "it waits for the probe's turn"
    );
    let stop = format!("{{\"format\":1,\"at\":{},\"event\":\"stop\"}}\n", now_ms());
    stage.state(&format!("session/{SID}/lease.jsonl"), &stop);
    let answered = Instant::now();
    assert_woken(&hook.wait_with_output().unwrap());
    assert!(
        answered.elapsed() < Duration::from_secs(5),
        "{:?}",
        answered.elapsed()
    );
}

#[test]
fn a_state_of_tomorrow_is_left_alone() {
    let stage = overloaded();
    let tomorrow = r#"{"format":9,"transient_wakes":"in another form"}"#;
    stage.state(&format!("session/{SID}/wedge.json"), tomorrow);
    let client = stage.idle_client();
    assert_silent(&stage.run(client.0.id(), &stage.payload("server_error", OVERLOADED)));
    let kept = std::fs::read_to_string(stage.root().join(format!("session/{SID}/wedge.json"))).unwrap();
    assert_eq!(kept, tomorrow);
    assert!(stage.log().contains("upgrade Rungs"), "{}", stage.log());
    assert_eq!(stage.episode()["actor"], "wedge-heal", "{PROMPT}");
}
