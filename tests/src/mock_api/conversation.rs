//! What a request says about the conversation so far, without the client's own
//! prompt: enough to assert that a session went on with everything it had.

use serde_json::Value;

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Plain text. Reminders that the client injects are left out.
    Text(String),
    /// A tool call.
    ToolUse {
        /// Pairs the call with its result.
        id: String,
        /// The tool.
        name: String,
    },
    /// The result of a tool call.
    ToolResult {
        /// The call that it answers.
        id: String,
        /// Its text.
        text: String,
    },
    /// Anything else, by its type.
    Other(String),
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `user` or `assistant`.
    pub role: String,
    /// Its pieces in order.
    pub blocks: Vec<Block>,
}

/// The messages of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation(pub Vec<Message>);

impl Conversation {
    pub(super) fn of(body: &Value) -> Conversation {
        let messages = body.get("messages").and_then(Value::as_array);
        let messages = messages.into_iter().flatten().map(|message| Message {
            role: text_at(message, "role"),
            blocks: blocks(message.get("content").unwrap_or(&Value::Null)),
        });
        Conversation(messages.filter(|message| !message.blocks.is_empty()).collect())
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.0.iter().flat_map(|message| &message.blocks)
    }

    /// The first text that a person or a parent agent gave.
    pub fn first_prompt(&self) -> &str {
        let texts = self.0.iter().filter(|message| message.role == "user");
        texts
            .flat_map(|message| &message.blocks)
            .find_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .unwrap_or("")
    }

    /// Whether any text contains this.
    pub fn has_text(&self, part: &str) -> bool {
        self.count_text(part) > 0
    }

    /// How many texts contain this.
    pub fn count_text(&self, part: &str) -> usize {
        self.blocks()
            .filter(|block| matches!(block, Block::Text(text) if text.contains(part)))
            .count()
    }

    /// Whether any tool result contains this.
    pub fn has_tool_result(&self, part: &str) -> bool {
        self.blocks()
            .any(|block| matches!(block, Block::ToolResult { text, .. } if text.contains(part)))
    }

    /// Whether every tool call has its result.
    pub fn is_complete(&self) -> bool {
        self.blocks().all(|block| match block {
            Block::ToolUse { id, .. } => self
                .blocks()
                .any(|other| matches!(other, Block::ToolResult { id: of, .. } if of == id)),
            _ => true,
        })
    }

    /// Whether this conversation has all tool calls and results of an earlier
    /// one, in the same order.
    pub fn continues(&self, earlier: &Conversation) -> bool {
        let tools = |conversation: &Conversation| -> Vec<Block> {
            let blocks = conversation.blocks();
            blocks
                .filter(|block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. }))
                .cloned()
                .collect()
        };
        tools(self).starts_with(&tools(earlier)) && self.first_prompt() == earlier.first_prompt()
    }
}

fn text_at(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
}

fn blocks(content: &Value) -> Vec<Block> {
    if let Value::String(text) = content {
        return spoken(text).into_iter().collect();
    }
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(block).collect()
}

fn block(part: &Value) -> Option<Block> {
    match part.get("type").and_then(Value::as_str)? {
        "text" => spoken(&text_at(part, "text")),
        "tool_use" => Some(Block::ToolUse {
            id: text_at(part, "id"),
            name: text_at(part, "name"),
        }),
        "tool_result" => Some(Block::ToolResult {
            id: text_at(part, "tool_use_id"),
            text: flat(part.get("content").unwrap_or(&Value::Null)),
        }),
        other => Some(Block::Other(other.to_owned())),
    }
}

/// A wake is a task notification that carries its text in a reminder, so only
/// texts that are nothing but a reminder are dropped.
fn spoken(text: &str) -> Option<Block> {
    let reminder =
        text.trim_start().starts_with("<system-reminder>") && !text.contains("hook blocking error");
    (!reminder).then(|| Block::Text(text.to_owned()))
}

fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text_at(part, "text")).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_call_without_a_result_is_not_complete() {
        let call = json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "t1", "name": "Bash", "input": {} } ] });
        let result = json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": "hi" } ] });
        let open = Conversation::of(&json!({ "messages": [call] }));
        let closed = Conversation::of(&json!({ "messages": [call, result] }));
        assert!(!open.is_complete());
        assert!(closed.is_complete() && closed.has_tool_result("hi") && closed.continues(&open));
        assert!(!open.continues(&closed));
    }

    #[test]
    fn injected_reminders_are_not_the_first_prompt() {
        let body = json!({ "messages": [ { "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>x</system-reminder>" },
            { "type": "text", "text": "do it" } ] } ] });
        assert_eq!(Conversation::of(&body).first_prompt(), "do it");
    }
}
