//! An answer as the events of a stream, or as one message.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::step::{Answer, ToolCall};

/// Ids are unique in the process, so two answers never share one.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn fresh_id(prefix: &str) -> String {
    format!("{prefix}_mock{:08}", NEXT_ID.fetch_add(1, Ordering::Relaxed))
}

/// The whole message, for a request that wants no stream.
pub(super) fn message(answer: &Answer, model: &str) -> Value {
    let (text, tools) = content_of(answer);
    let mut content = Vec::new();
    if let Some(text) = text {
        content.push(json!({ "type": "text", "text": text }));
    }
    for tool in tools {
        content.push(json!({
            "type": "tool_use", "id": fresh_id("toolu"), "name": tool.name, "input": tool.input
        }));
    }
    json!({
        "id": fresh_id("msg"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": stop_reason(tools), "stop_sequence": null,
        "usage": usage()
    })
}

/// The events of a stream, each with its name.
pub(super) fn events(answer: &Answer, model: &str) -> Vec<(&'static str, Value)> {
    let (text, tools) = content_of(answer);
    let mut events = vec![(
        "message_start",
        json!({ "type": "message_start", "message": {
            "id": fresh_id("msg"), "type": "message", "role": "assistant", "model": model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage() } }),
    )];

    let mut index = 0;
    if let Some(text) = text {
        let delta = json!({ "type": "text_delta", "text": text });
        let start = json!({ "type": "text", "text": "" });
        block(&mut events, index, &start, &delta);
        index += 1;
    }
    for tool in tools {
        let start = json!({
            "type": "tool_use", "id": fresh_id("toolu"), "name": tool.name, "input": {}
        });
        let delta = json!({
            "type": "input_json_delta", "partial_json": tool.input.to_string()
        });
        block(&mut events, index, &start, &delta);
        index += 1;
    }

    events.push((
        "message_delta",
        json!({ "type": "message_delta", "usage": usage(),
            "delta": { "stop_reason": stop_reason(tools), "stop_sequence": null } }),
    ));
    events.push(("message_stop", json!({ "type": "message_stop" })));
    events
}

fn block(events: &mut Vec<(&'static str, Value)>, index: usize, start: &Value, delta: &Value) {
    events.push((
        "content_block_start",
        json!({ "type": "content_block_start", "index": index, "content_block": start }),
    ));
    events.push((
        "content_block_delta",
        json!({ "type": "content_block_delta", "index": index, "delta": delta }),
    ));
    events.push((
        "content_block_stop",
        json!({ "type": "content_block_stop", "index": index }),
    ));
}

/// A failure in the middle of a stream still begins with some text.
fn content_of(answer: &Answer) -> (Option<&str>, &[ToolCall]) {
    match answer {
        Answer::Message { text, tools } => (text.as_deref(), tools),
        _ => (Some("an answer that breaks off"), &[]),
    }
}

fn stop_reason(tools: &[ToolCall]) -> &'static str {
    if tools.is_empty() { "end_turn" } else { "tool_use" }
}

fn usage() -> Value {
    json!({ "input_tokens": 1200, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": 5 })
}
