//! The end of a session's transcript, read leniently.
//!
//! A transcript is a file of JSON lines that the client appends to and that can
//! grow to gigabytes, so only its end is read. Its first line is then mostly
//! cut, its last one may be half written (Ruya-AI/cozempic#147), and lines of
//! bookkeeping surround the ones that matter. Nothing in here fails: what
//! cannot be read is skipped and counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::lenient;

/// One transcript line: the fields that a rung uses, each absent unless it is
/// there and of the right type (measured, 2.1.332, unless noted).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the client's own marks, one field each"
)]
pub struct Line<'a> {
    /// `assistant`, `user`, `system`, `queue-operation`, … or bookkeeping.
    #[serde(rename = "type", borrow, deserialize_with = "lenient::text")]
    pub kind: Option<Cow<'a, str>>,
    /// Of `system` lines: `api_error`, `compact_boundary`, `local_command`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub subtype: Option<Cow<'a, str>>,
    /// RFC 3339, UTC, milliseconds.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub timestamp: Option<Cow<'a, str>>,
    /// The session that the line belongs to.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub session_id: Option<Cow<'a, str>>,
    /// The client that wrote the line.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub version: Option<Cow<'a, str>>,
    /// True on the lines of a sub-agent.
    #[serde(deserialize_with = "lenient::flag")]
    pub is_sidechain: bool,
    /// The sub-agent that wrote the line.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub agent_id: Option<Cow<'a, str>>,
    /// True on user lines that the client wrote by itself.
    #[serde(deserialize_with = "lenient::flag")]
    pub is_meta: bool,
    /// True on the summary that follows a compaction.
    #[serde(deserialize_with = "lenient::flag")]
    pub is_compact_summary: bool,
    /// `typed`, `sdk` or `system`.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub prompt_source: Option<Cow<'a, str>>,
    /// `human`, `task_notification`, `auto_continuation`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub turn_origin: Option<Cow<'a, str>>,
    /// The mark of a turn that ended in a failure. Missing on some lines of
    /// 2.1.197 and on 2025's.
    #[serde(deserialize_with = "lenient::flag")]
    pub is_api_error_message: bool,
    /// The client's name for the failure. An object on retry lines: absent then.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub error: Option<Cow<'a, str>>,
    /// The same string as the hook payload's `error_details`.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub error_details: Option<Cow<'a, str>>,
    /// `usage_limit_reached`, `tool_history_mismatch`, `connection_failed`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub api_error: Option<Cow<'a, str>>,
    /// The HTTP status. Absent for failures that the client made up itself.
    #[serde(deserialize_with = "lenient::number")]
    pub api_error_status: Option<i64>,
    /// True on a throttle.
    #[serde(deserialize_with = "lenient::flag")]
    pub api_error_is_transient: bool,
    /// The wall in structured form. Absent before about 2.1.226.
    #[serde(borrow, deserialize_with = "quota")]
    pub quota_limits: Option<QuotaLimits<'a>>,
    /// Of `system` and `queue-operation` lines.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub content: Option<Cow<'a, str>>,
    /// Of `queue-operation` lines: `enqueue`, `dequeue`, `remove`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub operation: Option<Cow<'a, str>>,
    /// Of `assistant` and `user` lines.
    #[serde(borrow, deserialize_with = "object")]
    pub message: Option<Message<'a>>,
    /// Of `progress` lines.
    #[serde(borrow, deserialize_with = "object")]
    pub data: Option<Progress<'a>>,
}

/// The account's window that refused the request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QuotaLimits<'a> {
    /// `allowed`, `allowed_warning`, `rejected`: only this speaks of the request.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub status: Option<Cow<'a, str>>,
    /// Epoch seconds; some stores hold milliseconds.
    #[serde(deserialize_with = "lenient::number")]
    pub resets_at: Option<i64>,
    /// `five_hour`, `seven_day`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub rate_limit_type: Option<Cow<'a, str>>,
}

/// What was said.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    /// `<synthetic>` for lines that no model wrote.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub model: Option<Cow<'a, str>>,
    /// `end_turn`, `tool_use`, `stop_sequence`, …
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub stop_reason: Option<Cow<'a, str>>,
    /// A plain string, or blocks.
    #[serde(borrow)]
    pub content: Content<'a>,
}

/// What a `progress` line says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Progress<'a> {
    /// `compacting`, …
    #[serde(rename = "type", borrow, deserialize_with = "lenient::text")]
    pub kind: Option<Cow<'a, str>>,
}

/// One block of a message's content.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    /// `text`, `tool_use`, `tool_result`, `thinking`, `image`, …
    #[serde(rename = "type", borrow, deserialize_with = "lenient::text")]
    pub kind: Option<Cow<'a, str>>,
    /// Of text blocks.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub text: Option<Cow<'a, str>>,
    /// Of tool calls.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub id: Option<Cow<'a, str>>,
    /// Of tool calls: the tool.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub name: Option<Cow<'a, str>>,
    /// Of tool results: the call that is answered.
    #[serde(borrow, deserialize_with = "lenient::text")]
    pub tool_use_id: Option<Cow<'a, str>>,
}

/// A message's content as blocks; a plain string is one text block.
#[derive(Debug, Clone, Default)]
pub struct Content<'a>(pub Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or content blocks")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(one_text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(one_text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element::<Object<Block<'de>>>()? {
                    blocks.extend(block.0);
                }
                Ok(Content(blocks))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::default())
            }
        }
        from.deserialize_any(Blocks)
    }
}

fn one_text(text: Cow<'_, str>) -> Content<'_> {
    Content(vec![Block {
        kind: Some(Cow::Borrowed("text")),
        text: Some(text),
        ..Block::default()
    }])
}

/// An object, or nothing: a string, a list or a number reads as absent.
struct Object<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Option<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<T>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(None)
            }

            fn visit_str<E>(self, _: &str) -> Result<Option<T>, E> {
                Ok(None)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Option<T>, E> {
                Ok(None)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Option<T>, E> {
                Ok(None)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Option<T>, E> {
                Ok(None)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Option<T>, E> {
                Ok(None)
            }

            fn visit_unit<E>(self) -> Result<Option<T>, E> {
                Ok(None)
            }
        }
        from.deserialize_any(Fields(std::marker::PhantomData)).map(Object)
    }
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Object::deserialize(from).map(|object| object.0)
}

fn quota<'de, D: Deserializer<'de>>(from: D) -> Result<Option<QuotaLimits<'de>>, D::Error> {
    object(from)
}

impl Line<'_> {
    fn is_type(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    fn is_system(&self, subtype: &str) -> bool {
        self.is_type("system") && self.subtype.as_deref() == Some(subtype)
    }

    /// True for a line of the session's own conversation, not of a sub-agent's.
    pub fn is_main(&self) -> bool {
        !self.is_sidechain && self.agent_id.as_deref().is_none_or(str::is_empty)
    }

    /// True for the client's note that it tries a request again by itself.
    pub fn is_retry(&self) -> bool {
        self.is_system("api_error")
    }

    /// The first text block of the message, or nothing.
    pub fn text(&self) -> &str {
        self.blocks()
            .iter()
            .find_map(|block| block.text.as_deref())
            .unwrap_or_default()
    }

    fn blocks(&self) -> &[Block<'_>] {
        self.message
            .as_ref()
            .map(|message| message.content.0.as_slice())
            .unwrap_or_default()
    }

    fn is_of_use(&self) -> bool {
        let kinds = ["assistant", "user", "system", "queue-operation", "progress"];
        kinds.iter().any(|kind| self.is_type(kind))
    }

    fn ends_a_turn(&self) -> bool {
        self.is_system("stop_hook_summary") || self.is_system("turn_duration")
    }

    fn calls_a_tool(&self) -> bool {
        self.is_type("assistant") && self.blocks().iter().any(|block| block.name.is_some())
    }

    /// True for an assistant line that marks the end of a turn in a failure.
    ///
    /// A sentence counts only where the client wrote no mark at all: before 2.1.
    pub fn is_failure(&self) -> bool {
        if !self.is_type("assistant") {
            return false;
        }
        let stop_reason = self
            .message
            .as_ref()
            .and_then(|message| message.stop_reason.as_deref());
        if self.is_api_error_message || self.error.is_some() {
            // `media_removed` has the mark too, but the turn goes on after it.
            return stop_reason != Some("tool_use") && self.api_error.as_deref() != Some("media_removed");
        }
        let synthetic =
            self.message.as_ref().and_then(|message| message.model.as_deref()) == Some("<synthetic>");
        synthetic && self.is_before_marks() && is_failure_sentence(self.text())
    }

    fn is_before_marks(&self) -> bool {
        let Some(version) = self.version.as_deref() else {
            return true;
        };
        let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) => (major, minor) < (2, 1),
            _ => false,
        }
    }
}

fn is_failure_sentence(text: &str) -> bool {
    let starts = [
        "API Error",
        "Claude AI usage limit reached",
        "Claude usage limit reached",
        "5-hour limit reached",
    ];
    let more = [
        "Weekly limit reached",
        "Opus weekly limit reached",
        "You've hit your",
        "Credit balance is too low",
    ];
    starts.iter().chain(&more).any(|start| text.starts_with(start))
}

/// Where the session's own conversation stands at the end of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// No line of the conversation was found.
    Unseen,
    /// The last turn ended well.
    Ended,
    /// The model's last words, without a mark whether the turn ended with them.
    /// Old clients wrote none.
    Spoke,
    /// The last turn ended in a failure: the index of its line.
    Failed(usize),
    /// `/compact` failed and nothing was tried since: the index of its line.
    CompactionFailed(usize),
    /// A person stopped the turn.
    Interrupted,
    /// A tool waits for a person: a question or a plan.
    AsksPerson,
    /// Tools run, or ran when the line was written: their names.
    ToolOpen(Vec<String>),
    /// A prompt or a tool's result waits for the model.
    AwaitsModel,
}

/// More lines than a turn has, and a bound on memory.
const LINES_MAX: usize = 20_000;

/// How many lines are looked at for those, a bound on time.
const LINES_SEEN_MAX: usize = 200_000;

/// The lines at the end of a transcript, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Tail<'a> {
    /// The lines of the conversation, of the queue, and the client's notes.
    pub lines: Vec<Line<'a>>,
    /// Whole lines that could not be read.
    pub unreadable: usize,
    /// True when the last line is half written.
    pub torn: bool,
}

impl<'a> Tail<'a> {
    /// Reads the end of a file. `from_start` says that `bytes` is the whole
    /// file; else the first line is taken for cut and dropped.
    pub fn from_bytes(bytes: &'a [u8], from_start: bool) -> Self {
        let mut tail = Self::default();
        let mut lines = bytes.rsplit(|&byte| byte == b'\n').enumerate().peekable();
        while let Some((from_end, line)) = lines.next() {
            let is_cut = !from_start && lines.peek().is_none();
            if is_cut || tail.lines.len() == LINES_MAX || from_end == LINES_SEEN_MAX {
                break;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match parse(line) {
                Some(line) if line.is_of_use() => tail.lines.push(line),
                Some(_) => {}
                None if from_end == 0 => tail.torn = true,
                None => tail.unreadable += 1,
            }
        }
        tail.lines.reverse();
        tail
    }

    /// The session of the newest line that names one.
    pub fn session_id(&self) -> Option<&str> {
        self.lines
            .iter()
            .rev()
            .find_map(|line| line.session_id.as_deref())
    }

    /// The time of the newest sign of work, as it is written: not that of a
    /// prompt that waits in the queue.
    pub fn newest_timestamp(&self) -> Option<&str> {
        let mut work = self
            .lines
            .iter()
            .rev()
            .filter(|line| !line.is_type("queue-operation"));
        work.find_map(|line| line.timestamp.as_deref())
    }

    /// True when a person logged in since the model last answered.
    pub fn logged_in_since(&self) -> bool {
        let newest = self.lines.iter().rev().filter(|line| line.is_main());
        newest
            .take_while(|line| !line.is_type("assistant") || line.is_failure())
            .filter(|line| line.is_system("local_command") || line.is_type("user"))
            .map(|line| line.content.as_deref().unwrap_or_else(|| line.text()))
            .any(|text| text.starts_with("<local-command-stdout>Login successful"))
    }

    /// True when the newest words of all are a sub-agent's failure.
    pub fn sub_agent_failed(&self) -> bool {
        let newest = self
            .lines
            .iter()
            .rev()
            .find(|line| line.is_type("assistant") || line.is_type("user"));
        newest.is_some_and(|line| !line.is_main() && line.is_failure())
    }

    /// True when the newest line, bookkeeping apart, says that the client tries
    /// a request again by itself.
    pub fn is_retrying(&self) -> bool {
        let newest = self.lines.iter().rev().find(|line| {
            line.is_retry() || (line.is_main() && (line.is_type("assistant") || line.is_type("user")))
        });
        newest.is_some_and(Line::is_retry)
    }

    /// True when a compaction had begun and nothing followed it.
    pub fn is_compacting(&self) -> bool {
        let newest = self
            .lines
            .iter()
            .rev()
            .find(|line| !line.is_type("queue-operation"));
        newest.is_some_and(|line| {
            line.is_type("progress")
                && line.data.as_ref().and_then(|data| data.kind.as_deref()) == Some("compacting")
        })
    }

    /// How many prompts were typed, or sent by a wake, and not taken up.
    pub fn queued_prompts(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| line.is_type("queue-operation"))
            .fold(0, |queued: usize, line| match line.operation.as_deref() {
                Some("enqueue") => queued + 1,
                Some("popAll") => 0,
                Some(_) => queued.saturating_sub(1),
                None => queued,
            })
    }

    /// How often the conversation was compacted since anything else happened.
    pub fn compactions_in_a_row(&self) -> usize {
        let since = self.lines.iter().rev().take_while(|line| {
            let asks = line.is_type("user") && user_says(line) != UserSays::Nothing;
            !(line.is_main() && (asks || line.calls_a_tool()))
        });
        since.filter(|line| line.is_system("compact_boundary")).count()
    }

    /// On how many different prompts, newest first and without a gap, the
    /// session failed in a way for which `same` holds.
    pub fn failures_in_a_row(&self, same: impl Fn(&Line<'_>) -> bool) -> usize {
        let mut prompts = 0;
        let mut failed = false;
        for line in self.lines.iter().rev().filter(|line| line.is_main()) {
            if line.is_type("assistant") {
                if !line.is_failure() || !same(line) {
                    break;
                }
                failed = true;
            } else if line.is_type("user") && user_says(line) == UserSays::Prompt {
                prompts += usize::from(std::mem::take(&mut failed));
            }
        }
        prompts + usize::from(failed)
    }

    /// Where the conversation stands.
    pub fn turn(&self) -> Turn {
        let mut turn = Turn::Unseen;
        let mut open: BTreeMap<&str, &str> = BTreeMap::new();
        for (index, line) in self.lines.iter().enumerate().filter(|(_, line)| line.is_main()) {
            match line.kind.as_deref() {
                Some("assistant") => turn = after_assistant(line, index, &mut open),
                Some("user") => {
                    for block in line.blocks() {
                        if let Some(answered) = block.tool_use_id.as_deref() {
                            open.remove(answered);
                        }
                    }
                    turn = match user_says(line) {
                        UserSays::Nothing => turn,
                        UserSays::Interrupt => {
                            open.clear();
                            Turn::Interrupted
                        }
                        UserSays::Prompt => {
                            open.clear();
                            Turn::AwaitsModel
                        }
                        UserSays::ToolResult if open.is_empty() => Turn::AwaitsModel,
                        UserSays::ToolResult => tools(&open),
                    };
                }
                Some("system") if is_failed_compaction(line) => {
                    turn = Turn::CompactionFailed(index);
                }
                Some("system") if turn == Turn::Spoke && line.ends_a_turn() => turn = Turn::Ended,
                _ => {}
            }
        }
        turn
    }
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    // serde would also take a list for a struct.
    (line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{'))
        .then(|| serde_json::from_slice(line).ok())
        .flatten()
}

fn after_assistant<'l>(line: &'l Line<'_>, index: usize, open: &mut BTreeMap<&'l str, &'l str>) -> Turn {
    if line.is_failure() {
        open.clear();
        return Turn::Failed(index);
    }
    for block in line.blocks() {
        if let (Some("tool_use"), Some(id)) = (block.kind.as_deref(), block.id.as_deref()) {
            open.insert(id, block.name.as_deref().unwrap_or_default());
        }
    }
    if !open.is_empty() {
        return tools(open);
    }
    match line
        .message
        .as_ref()
        .and_then(|message| message.stop_reason.as_deref())
    {
        // One block a line: the call that follows this text is not there yet.
        Some("tool_use" | "pause_turn") => Turn::AwaitsModel,
        None if line.text().is_empty() => Turn::AwaitsModel,
        None => Turn::Spoke,
        Some(_) => Turn::Ended,
    }
}

fn tools(open: &BTreeMap<&str, &str>) -> Turn {
    if open
        .values()
        .any(|name| matches!(*name, "AskUserQuestion" | "ExitPlanMode"))
    {
        return Turn::AsksPerson;
    }
    Turn::ToolOpen(open.values().map(|name| (*name).to_owned()).collect())
}

fn is_failed_compaction(line: &Line<'_>) -> bool {
    let Some(content) = line
        .content
        .as_deref()
        .filter(|_| line.is_system("local_command"))
    else {
        return false;
    };
    content.contains("<local-command-stderr>")
        && (content.contains("Error during compaction") || content.contains("Error compacting conversation"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserSays {
    /// Asks the model for something: a person's prompt, a wake, a hook's feedback.
    Prompt,
    ToolResult,
    Interrupt,
    /// A command of the client, its output, a summary.
    Nothing,
}

fn user_says(line: &Line<'_>) -> UserSays {
    let text = line.text();
    if text.starts_with("[Request interrupted by user") {
        return UserSays::Interrupt;
    }
    if line
        .blocks()
        .iter()
        .any(|block| block.kind.as_deref() == Some("tool_result"))
    {
        return UserSays::ToolResult;
    }
    let command = [
        "<command-name>",
        "<command-message>",
        "<local-command-",
        "Caveat: The messages below",
    ];
    if line.is_compact_summary || command.iter().any(|start| text.starts_with(start)) {
        return UserSays::Nothing;
    }
    UserSays::Prompt
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
