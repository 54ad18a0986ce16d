//! The JSON object that the client writes to a hook's standard input.
//!
//! Hooks stand in the way of every turn, so this is parsed once, borrowed from
//! the bytes that were read, and knows only the fields that a rung uses.
//! Unknown fields are skipped. A known field of a wrong type is an error: the
//! caller then knows nothing about the turn and keeps its hands off.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// What a hook was told. Which fields are there depends on the event (measured,
/// 2.1.332); absent and `null` are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Payload<'a> {
    /// The session the event belongs to. For a sub-agent it is the parent's.
    #[serde(borrow, deserialize_with = "text")]
    pub session_id: Option<Cow<'a, str>>,
    /// The session's transcript, spelled through the config folder in use.
    #[serde(borrow, deserialize_with = "text")]
    pub transcript_path: Option<Cow<'a, str>>,
    /// The session's working directory now: it follows `cd`.
    #[serde(borrow, deserialize_with = "text")]
    pub cwd: Option<Cow<'a, str>>,
    /// The turn's id, new for each prompt and each wake. Absent before the first.
    #[serde(borrow, deserialize_with = "text")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `Stop`, `StopFailure`, `SessionStart`, and so on.
    #[serde(borrow, deserialize_with = "text")]
    pub hook_event_name: Option<Cow<'a, str>>,
    /// Not sent with `StopFailure`, `Session*` and `Notification`.
    #[serde(borrow, deserialize_with = "text")]
    pub permission_mode: Option<Cow<'a, str>>,
    /// `StopFailure`: the client's own name for the failure, such as `rate_limit`.
    #[serde(borrow, deserialize_with = "text")]
    pub error: Option<Cow<'a, str>>,
    /// `StopFailure`: often absent; else like `400 {json body}`.
    #[serde(borrow, deserialize_with = "text")]
    pub error_details: Option<Cow<'a, str>>,
    /// `Stop`: the last words of the model. `StopFailure`: the rendered error.
    #[serde(borrow, deserialize_with = "text")]
    pub last_assistant_message: Option<Cow<'a, str>>,
    /// Set when the event comes from a sub-agent (the compaction agent included).
    #[serde(borrow, deserialize_with = "text")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The sub-agent's type. Empty for the compaction agent.
    #[serde(borrow, deserialize_with = "text")]
    pub agent_type: Option<Cow<'a, str>>,
    /// `Stop`: true after a hook, or a wake, made the turn go on.
    pub stop_hook_active: Option<bool>,
    /// `Stop`: what still runs and will wake the session when it ends.
    #[serde(borrow, deserialize_with = "list")]
    pub background_tasks: Vec<BackgroundTask<'a>>,
    /// `Stop`: wakes that are armed.
    #[serde(borrow, deserialize_with = "list")]
    pub session_crons: Vec<SessionCron<'a>>,
    /// `Notification`: `idle_prompt`, `permission_prompt`, `quota_auto_resume_fired`, …
    #[serde(borrow, deserialize_with = "text")]
    pub notification_type: Option<Cow<'a, str>>,
    /// `Notification`: its text.
    #[serde(borrow, deserialize_with = "text")]
    pub message: Option<Cow<'a, str>>,
    /// `SessionStart`: `startup`, `resume`, `clear`, `compact`, `fork`.
    #[serde(borrow, deserialize_with = "text")]
    pub source: Option<Cow<'a, str>>,
    /// `SessionEnd`: `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
    #[serde(borrow, deserialize_with = "text")]
    pub reason: Option<Cow<'a, str>>,
    /// `UserPromptSubmit`: the prompt, a person's or an injected one.
    #[serde(borrow, deserialize_with = "text")]
    pub prompt: Option<Cow<'a, str>>,
}

/// Work that goes on after the turn ended: a shell or a sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BackgroundTask<'a> {
    /// The client's id of the task.
    #[serde(borrow, deserialize_with = "text")]
    pub id: Option<Cow<'a, str>>,
    /// `shell`, `subagent`, …
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    pub kind: Option<Cow<'a, str>>,
    /// `running` while it can still wake the session.
    #[serde(borrow, deserialize_with = "text")]
    pub status: Option<Cow<'a, str>>,
    /// In the words of the one who started it.
    #[serde(borrow, deserialize_with = "text")]
    pub description: Option<Cow<'a, str>>,
}

/// A wake that the session armed for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionCron<'a> {
    /// The client's id of the wake.
    #[serde(borrow, deserialize_with = "text")]
    pub id: Option<Cow<'a, str>>,
    /// Five cron fields, in the machine's zone.
    #[serde(borrow, deserialize_with = "text")]
    pub schedule: Option<Cow<'a, str>>,
    /// False for a wake that fires once.
    pub recurring: Option<bool>,
    /// What the wake will say.
    #[serde(borrow, deserialize_with = "text")]
    pub prompt: Option<Cow<'a, str>>,
}

impl<'a> Payload<'a> {
    /// Reads one payload: exactly one JSON object, white space around it allowed.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        // serde would also take an array for a struct; `[]` would then pass as
        // a payload without any field.
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
            return Err(serde::de::Error::custom("expected a JSON object, found an array"));
        }
        serde_json::from_slice(bytes)
    }

    /// True when the event is one of the named kind.
    pub fn is_event(&self, name: &str) -> bool {
        self.hook_event_name.as_deref() == Some(name)
    }

    /// True when the event comes from a sub-agent: not the session's own turn.
    pub fn is_subagent(&self) -> bool {
        self.agent_id.as_deref().is_some_and(|id| !id.is_empty())
    }
}

/// A string that borrows where the JSON has no escape. serde's own
/// `Option<Cow<str>>` would always copy.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    Ok(Option::<Text<'a>>::deserialize(from)?.map(|text| text.0))
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_borrow_from_the_bytes_and_unknown_ones_are_skipped() {
        let bytes = br#"{"session_id":"s","effort":{"level":"medium"},"error":"rate_limit",
            "last_assistant_message":"You've hit your \"5-hour\" limit","new_in_3":[1,{"a":null}]}"#;
        let payload = Payload::parse(bytes).unwrap();
        assert!(matches!(payload.session_id, Some(Cow::Borrowed("s"))));
        assert!(matches!(payload.error, Some(Cow::Borrowed("rate_limit"))));
        assert_eq!(
            payload.last_assistant_message.as_deref(),
            Some("You've hit your \"5-hour\" limit")
        );
        assert!(!payload.is_subagent());
    }

    #[test]
    fn null_is_absent() {
        let payload = Payload::parse(br#"{"agent_id":null,"background_tasks":null,"stop_hook_active":null}"#);
        assert_eq!(payload.unwrap(), Payload::default());
    }

    #[test]
    fn background_work_and_armed_wakes_are_read() {
        let payload = Payload::parse(
            br#"{"background_tasks":[{"id":"b","type":"shell","status":"running","command":"x"}],
                "session_crons":[{"id":"c","schedule":"0 9 * * 1-5","recurring":true,"prompt":"go"}]}"#,
        )
        .unwrap();
        assert_eq!(payload.background_tasks[0].kind.as_deref(), Some("shell"));
        assert_eq!(payload.session_crons[0].recurring, Some(true));
    }

    #[test]
    fn what_is_no_payload_is_an_error() {
        for bad in [
            &b""[..],
            b"[]",
            b" [1]",
            b"null",
            b"\"x\"",
            b"{",
            b"{} {}",
            b"{\"session_id\":1}",
            b"{\"stop_hook_active\":\"true\"}",
            b"{\"background_tasks\":{}}",
            b"{\"session_id\":\"\xff\"}",
        ] {
            assert!(Payload::parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
