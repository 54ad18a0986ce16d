use super::*;

const NOON: &str = "2026-09-01T12:00:00Z";
const PROMPT: &str =
    r#"{"type":"user","sessionId":"s","timestamp":"2026-09-01T11:59:00Z","message":{"content":"go"}}"#;
const RESULT: &str = r#"{"type":"user","timestamp":"2026-09-01T11:59:01Z","message":{"content":[{"type":"tool_result","tool_use_id":"1"}]}}"#;
const ANSWER: &str = r#"{"type":"assistant","timestamp":"2026-09-01T11:59:03Z","message":{"stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}}"#;
const WALL_PAYLOAD: &str = r#"{"session_id":"s","hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"You've hit your session limit · resets 3pm (UTC)"}"#;

fn call(tool: &str) -> String {
    format!(
        r#"{{"type":"assistant","timestamp":"2026-09-01T11:59:00Z","message":{{"stop_reason":"tool_use","content":[{{"type":"tool_use","id":"1","name":"{tool}"}}]}}}}"#
    )
}

fn failure(error: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","timestamp":"2026-09-01T11:59:02Z","isApiErrorMessage":true,"error":"{error}","message":{{"model":"<synthetic>","stop_reason":"stop_sequence","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// Judges lines, a payload (`""` for none) and readings (`""` for none).
fn told(lines: &[&str], payload: &str, readings: &str, now: &str) -> Diagnosis {
    let text = lines.join("\n") + "\n";
    let tail = Tail::from_bytes(text.as_bytes(), true);
    let payload = Some(payload).filter(|payload| !payload.is_empty());
    let payload = payload.map(|payload| Payload::parse(payload.as_bytes()).unwrap());
    let observed = Some(readings).filter(|readings| !readings.is_empty());
    let observed: Option<Observed> = observed.map(|readings| serde_json::from_str(readings).unwrap());
    diagnose(Evidence {
        payload: payload.as_ref(),
        tail: &tail,
        observed: observed.as_ref(),
        now_ms: reset_time::from_rfc3339(now).unwrap(),
        zone: None,
    })
}

#[test]
fn the_default_is_hands_off() {
    let default = Diagnosis::default();
    assert_eq!((default.verdict, default.heal), (Verdict::Unknown, Heal::None));
}

#[test]
fn the_words_of_verdicts_windows_and_heals_are_those_of_the_interface() {
    assert_eq!(Verdict::NotForUs.to_string(), "not-for-us");
    assert_eq!(Heal::MoveAccount.to_string(), "move-account");
    let names = [
        "five_hour",
        "seven_day",
        "seven_day_opus",
        "seven_day_sonnet",
        "overage",
    ];
    for name in names
        .iter()
        .chain(&["seven_day_overage_included", "seven_day_oauth_apps"])
    {
        assert_eq!(Window::from_name(name).unwrap().to_string(), *name);
    }
    assert_eq!(Window::from_name("a_window_of_a_later_client"), None);
}

#[test]
fn a_failure_whose_line_is_not_on_disk_yet_is_told_by_the_payload() {
    for lines in [
        &[][..],
        &[PROMPT],
        &[PROMPT, &call("Bash")],
        &[PROMPT, &call("Bash"), RESULT],
    ] {
        let wall = told(lines, WALL_PAYLOAD, "", NOON);
        assert_eq!(wall.kind, "five-hour-wall", "{lines:?}");
        assert_eq!(
            wall.resets_at.and_then(reset_time::to_rfc3339).unwrap(),
            "2026-09-01T15:00:00Z"
        );
    }
}

#[test]
fn others_failures_are_not_ours() {
    // anthropics/claude-code#91419
    assert_eq!(told(&[PROMPT, ANSWER], WALL_PAYLOAD, "", NOON).kind, "helper");
    assert_eq!(
        told(&[PROMPT, &call("Agent")], WALL_PAYLOAD, "", NOON).kind,
        "sub-agent"
    );
    let side = failure("rate_limit", "x").replace("\"error\"", "\"isSidechain\":true,\"error\"");
    assert_eq!(
        told(&[PROMPT, &call("Bash"), &side], WALL_PAYLOAD, "", NOON).kind,
        "sub-agent"
    );
    let agent = WALL_PAYLOAD.replace("\"error\"", "\"agent_id\":\"a\",\"error\"");
    assert_eq!(told(&[PROMPT], &agent, "", NOON).kind, "sub-agent");
    let other = told(&[PROMPT], &WALL_PAYLOAD.replace("\"s\"", "\"t\""), "", NOON);
    assert_eq!((other.kind, other.verdict), ("another-session", Verdict::Unknown));
}

#[test]
fn a_wall_is_over_only_when_it_was_refused_before_the_reset_and_time_has_passed() {
    let wall = failure("rate_limit", "You've hit your session limit · resets 3pm (UTC)");
    let kind = |now: &str| told(&[PROMPT, &wall], "", "", now).kind;
    assert_eq!(kind("2026-09-01T14:59:59Z"), "five-hour-wall");
    assert_eq!(kind("2026-09-01T15:10:00Z"), "five-hour-wall");
    assert_eq!(kind("2026-09-01T15:10:01Z"), "wall-over");
    // The next day its clock time is not tomorrow's.
    assert_eq!(kind("2026-09-02T10:00:00Z"), "wall-over");
    let stale = r#"{"hook_event_name":"Notification","notification_type":"quota_auto_resume_stale"}"#;
    assert_eq!(
        told(&[PROMPT, &wall], stale, "", "2026-09-01T15:01:00Z").kind,
        "wall-over"
    );
    // Refused after the reset it names: enforced still (#85259).
    let late = failure(
        "rate_limit",
        "You've hit your session limit · resets 11:30am (UTC)",
    );
    assert_eq!(told(&[PROMPT, &late], "", "", NOON).kind, "five-hour-wall");
}

#[test]
fn a_restart_is_not_spent_twice_on_a_conversation_that_is_too_long() {
    let long = failure("invalid_request", "Prompt is too long");
    let verdict = |readings: &str| told(&[PROMPT, &long], "", readings, NOON).verdict;
    assert_eq!(verdict(""), Verdict::Wedge);
    assert_eq!(
        verdict(r#"{"restarts_today":1,"last_restart_for":"request-hangs"}"#),
        Verdict::Wedge
    );
    assert_eq!(
        verdict(r#"{"restarts_today":0,"last_restart_for":"prompt-too-long"}"#),
        Verdict::Wedge
    );
    assert_eq!(
        verdict(r#"{"restarts_today":1,"last_restart_for":"prompt-too-long"}"#),
        Verdict::Poisoned
    );
}

#[test]
fn a_failed_compaction_is_read_from_the_clients_own_line() {
    let line = |text: &str| {
        format!(
            r#"{{"type":"system","subtype":"local_command","content":"<local-command-stderr>{text}</local-command-stderr>"}}"#
        )
    };
    let long = line("Error: Error during compaction: Error: Conversation too long.");
    assert_eq!(told(&[PROMPT, &long], "", "", NOON).kind, "prompt-too-long");
    let busy = line("Error during compaction: API Error: 529 Overloaded");
    assert_eq!(told(&[PROMPT, &busy], "", "", NOON).kind, "overloaded");
}

#[test]
fn a_login_that_was_renewed_since_is_a_wedge() {
    let dead = failure("authentication_failed", "Not logged in · Please run /login");
    let login = r#"{"type":"system","subtype":"local_command","content":"<local-command-stdout>Login successful</local-command-stdout>"}"#;
    assert_eq!(told(&[PROMPT, &dead], "", "", NOON).kind, "login");
    // #15007
    assert_eq!(
        told(&[PROMPT, &dead, login, PROMPT, &dead], "", "", NOON).kind,
        "login-not-reread"
    );
    assert_eq!(
        told(&[PROMPT, login, ANSWER, PROMPT, &dead], "", "", NOON).kind,
        "login"
    );
    assert_eq!(
        told(&[PROMPT, &dead], "", r#"{"login_renewed":true}"#, NOON).kind,
        "login-not-reread"
    );
}

#[test]
fn the_same_refusal_on_another_prompt_is_a_poisoned_conversation() {
    let refused = failure("invalid_request", "API Error: 400 a rule that is new");
    assert_eq!(told(&[PROMPT, &refused], "", "", NOON).verdict, Verdict::Unknown);
    let twice = told(&[PROMPT, &refused, PROMPT, &refused], "", "", NOON);
    assert_eq!((twice.verdict, twice.heal), (Verdict::Poisoned, Heal::Repair));
    assert!(
        twice.why.ends_with("Seen on 2 prompts in a row."),
        "{}",
        twice.why
    );
    assert_eq!(
        told(
            &[PROMPT, &refused, PROMPT, ANSWER, PROMPT, &refused],
            "",
            "",
            NOON
        )
        .verdict,
        Verdict::Unknown
    );
}

#[test]
fn a_person_who_is_asked_is_never_overtaken() {
    let wall = failure("rate_limit", "You've hit your session limit");
    assert_eq!(
        told(&[PROMPT, &wall], "", r#"{"pending_prompt":true}"#, NOON).kind,
        "waits-on-person"
    );
    for kind in ["permission_prompt", "elicitation_dialog", "agent_needs_input"] {
        let asks = format!(r#"{{"hook_event_name":"Notification","notification_type":"{kind}"}}"#);
        assert_eq!(told(&[PROMPT], &asks, "", NOON).kind, "waits-on-person");
    }
}

#[test]
fn a_turn_without_a_time_is_neither_working_nor_hung() {
    let undated = r#"{"type":"user","message":{"content":"go"}}"#;
    assert_eq!(told(&[undated], "", "", NOON).kind, "turn-open");
    let idle = r#"{"process_alive":true,"cpu_pct":0,"children":0}"#;
    assert_eq!(told(&[undated], "", idle, NOON).kind, "turn-open");
}

/// Lines, readings, minutes of silence, kind.
const SILENCES: [(&[&str], &str, i64, &str); 17] = [
    (&[PROMPT], "", 5, "turn-runs"),
    (&[PROMPT], "", 60, "turn-open"),
    (&[PROMPT], r#"{"process_alive":true}"#, 60, "turn-open"),
    (&[PROMPT], r#"{"cpu_pct":0}"#, 60, "turn-open"),
    (
        &[PROMPT],
        r#"{"process_alive":true,"cpu_pct":0}"#,
        10,
        "turn-runs",
    ),
    (
        &[PROMPT],
        r#"{"process_alive":true,"cpu_pct":0}"#,
        20,
        "request-hangs",
    ),
    (
        &[PROMPT],
        r#"{"process_alive":true,"cpu_pct":40}"#,
        20,
        "turn-open",
    ),
    (
        &[PROMPT],
        r#"{"process_alive":true,"cpu_pct":100}"#,
        31,
        "runaway",
    ),
    (&[PROMPT], r#"{"process_alive":false}"#, 1, "process-died"),
    (&[PROMPT, ANSWER], r#"{"process_alive":false}"#, 60, "turn-ended"),
    (
        &[PROMPT, ANSWER],
        r#"{"process_alive":true,"cpu_pct":0}"#,
        600,
        "turn-ended",
    ),
    (
        &[
            PROMPT,
            ANSWER,
            r#"{"type":"queue-operation","operation":"enqueue"}"#,
        ],
        r#"{"process_alive":true,"cpu_pct":0}"#,
        20,
        "queue-stuck",
    ),
    (
        &[PROMPT, "BASH"],
        r#"{"process_alive":true,"cpu_pct":0,"children":1}"#,
        60,
        "tool-runs",
    ),
    (
        &[PROMPT, "BASH"],
        r#"{"process_alive":true,"cpu_pct":0,"children":0}"#,
        60,
        "tool-hangs",
    ),
    (
        &[PROMPT, "AGENT"],
        r#"{"process_alive":true,"cpu_pct":0,"children":0}"#,
        60,
        "turn-open",
    ),
    (
        &[PROMPT, "MCP"],
        r#"{"process_alive":true,"cpu_pct":0,"children":1}"#,
        30,
        "tool-runs",
    ),
    (
        &[PROMPT, "MCP"],
        r#"{"process_alive":true,"cpu_pct":0,"children":1}"#,
        60,
        "tool-server-hangs",
    ),
];

#[test]
fn silence_is_judged_only_by_what_was_seen_of_the_process() {
    let (bash, agent, mcp) = (call("Bash"), call("Agent"), call("mcp__a__b"));
    for (lines, readings, minutes, kind) in SILENCES {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| match *line {
                "BASH" => bash.as_str(),
                "AGENT" => agent.as_str(),
                "MCP" => mcp.as_str(),
                line => line,
            })
            .collect();
        let last = reset_time::from_rfc3339("2026-09-01T11:59:03Z").unwrap() / 1000;
        let now = reset_time::to_rfc3339(last + minutes * 60).unwrap();
        assert_eq!(
            told(&lines, "", readings, &now).kind,
            kind,
            "{lines:?} {readings} {minutes}"
        );
    }
}
