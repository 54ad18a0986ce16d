use super::*;

const PROMPT: &str = r#"{"type":"user","message":{"content":"go"}}"#;
const CALL: &str = r#"{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"1","name":"Bash"}]}}"#;
const RESULT: &str =
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"ok"}]}}"#;
const ANSWER: &str =
    r#"{"type":"assistant","message":{"stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}}"#;
const FAILURE: &str = r#"{"type":"assistant","isApiErrorMessage":true,"error":"server_error","message":{"model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"x"}]}}"#;

fn turn(lines: &[&str]) -> Turn {
    let text = lines.join("\n") + "\n";
    Tail::from_bytes(text.as_bytes(), true).turn()
}

#[test]
fn where_a_conversation_stands() {
    assert_eq!(turn(&[]), Turn::Unseen);
    assert_eq!(turn(&[PROMPT]), Turn::AwaitsModel);
    assert_eq!(turn(&[PROMPT, CALL]), Turn::ToolOpen(vec!["Bash".into()]));
    assert_eq!(turn(&[PROMPT, CALL, RESULT]), Turn::AwaitsModel);
    assert_eq!(turn(&[PROMPT, CALL, RESULT, ANSWER]), Turn::Ended);
    assert_eq!(turn(&[PROMPT, FAILURE]), Turn::Failed(1));
    assert_eq!(turn(&[PROMPT, FAILURE, PROMPT]), Turn::AwaitsModel);
    assert_eq!(turn(&[PROMPT, FAILURE, PROMPT, ANSWER]), Turn::Ended);
}

#[test]
fn a_person_is_waited_for_or_stopped_it() {
    let interrupt = r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;
    assert_eq!(turn(&[PROMPT, CALL, RESULT, interrupt]), Turn::Interrupted);
    for tool in ["AskUserQuestion", "ExitPlanMode"] {
        assert_eq!(turn(&[PROMPT, &CALL.replace("Bash", tool)]), Turn::AsksPerson);
    }
}

#[test]
fn sub_agents_and_the_clients_own_lines_do_not_count() {
    let with = |mark: &str| FAILURE.replace(r#""error""#, &format!(r#"{mark},"error""#));
    let (side, agent) = (with(r#""isSidechain":true"#), with(r#""agentId":"a""#));
    let command = r#"{"type":"user","message":{"content":"<command-name>/model</command-name>"}}"#;
    let retry = r#"{"type":"system","subtype":"api_error","error":{"status":529}}"#;
    assert_eq!(turn(&[PROMPT, ANSWER, &side, &agent, command]), Turn::Ended);
    assert_eq!(turn(&[PROMPT, retry]), Turn::AwaitsModel);
    // The client took the image out and went on.
    let removed = FAILURE.replace("stop_sequence", "tool_use");
    assert_eq!(turn(&[PROMPT, &removed]), Turn::AwaitsModel);
}

#[test]
fn a_synthetic_line_without_a_mark_is_harmless_but_in_old_clients() {
    let line = |version: &str, text: &str| {
        let unmarked = FAILURE.replace(r#""isApiErrorMessage":true,"error":"server_error","#, "");
        let old = unmarked.replace(
            r#""type":"assistant""#,
            &format!(r#""type":"assistant","version":"{version}""#),
        );
        old.replace(r#""text":"x""#, &format!(r#""text":"{text}""#))
    };
    // paperclipai/paperclip#2358
    assert_eq!(turn(&[&line("2.1.332", "No response requested.")]), Turn::Ended);
    assert_eq!(
        turn(&[&line("2.1.332", "You've hit your session limit")]),
        Turn::Ended
    );
    assert_eq!(turn(&[&line("1.0.51", "No response requested.")]), Turn::Ended);
    assert_eq!(
        turn(&[&line("1.0.51", "Claude AI usage limit reached|1753077600")]),
        Turn::Failed(0)
    );
    // 2.1.197 wrote the name of the failure, but not always the flag.
    assert_eq!(
        turn(&[PROMPT, &FAILURE.replace(r#""isApiErrorMessage":true,"#, "")]),
        Turn::Failed(1)
    );
}

#[test]
fn old_clients_do_not_say_whether_the_turn_ended() {
    let spoken = ANSWER.replace("\"end_turn\"", "null");
    assert_eq!(turn(&[PROMPT, &spoken]), Turn::Spoke);
    let summary = r#"{"type":"system","subtype":"stop_hook_summary"}"#;
    assert_eq!(turn(&[PROMPT, &spoken, summary]), Turn::Ended);
}

#[test]
fn damaged_lines_are_counted_and_skipped() {
    let text = format!("cut line\n{PROMPT}\nnot json\n{ANSWER}\n{{\"type\":\"assist");
    let tail = Tail::from_bytes(text.as_bytes(), false);
    assert_eq!((tail.lines.len(), tail.unreadable, tail.torn), (2, 1, true));
    assert_eq!(tail.turn(), Turn::Ended);
    // A last line without its newline counts when it is whole.
    assert_eq!(
        Tail::from_bytes(PROMPT.as_bytes(), true).turn(),
        Turn::AwaitsModel
    );
    assert_eq!(Tail::from_bytes(PROMPT.as_bytes(), false).turn(), Turn::Unseen);
}

#[test]
fn fields_of_another_type_read_as_absent() {
    let odd = r#"{"type":"user","timestamp":1,"isSidechain":"yes","quotaLimits":"none","error":{"a":[1]},"message":{"content":[1,"x",null,{"type":"text","text":"hi"}]}}"#;
    let tail = Tail::from_bytes(odd.as_bytes(), true);
    assert_eq!(tail.turn(), Turn::AwaitsModel);
    assert_eq!(tail.lines[0].text(), "hi");
    assert_eq!(tail.lines[0].error, None);
}

#[test]
fn many_lines_are_bounded() {
    let text = "{\"type\":\"system\"}\n".repeat(LINES_MAX + 10);
    assert_eq!(Tail::from_bytes(text.as_bytes(), true).lines.len(), LINES_MAX);
    let bookkeeping = "{\"type\":\"mode\"}\n".repeat(LINES_SEEN_MAX);
    let text = format!("{PROMPT}\n{bookkeeping}");
    assert_eq!(Tail::from_bytes(text.as_bytes(), true).turn(), Turn::Unseen);
}

#[test]
fn the_queue_is_counted() {
    let queued = |operations: &[&str]| {
        let line = |operation: &&str| format!(r#"{{"type":"queue-operation","operation":"{operation}"}}"#);
        let lines: Vec<_> = operations.iter().map(line).collect();
        Tail::from_bytes(lines.join("\n").as_bytes(), true).queued_prompts()
    };
    assert_eq!(queued(&["enqueue", "dequeue"]), 0);
    assert_eq!(queued(&["dequeue", "enqueue", "enqueue", "remove"]), 1);
    assert_eq!(queued(&["enqueue", "enqueue", "popAll"]), 0);
}
