//! The lease: who hosts a session, how to start it again, and its turn boundaries.
//!
//! `session/<sid>/lease.jsonl` is append-only, one write a line, written by
//! session-lease alone. Readers fold its tail into a [`Lease`]. Lines of a newer
//! format, and lines that can't be read, are counted and passed over.

use serde::{Deserialize, Serialize};

/// The format that this version writes, and the newest that it understands.
pub const FORMAT: u32 = 1;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// [`FORMAT`].
    pub format: u32,
    /// When it happened (ms since 1970).
    pub at: i64,
    /// What happened.
    pub event: Event,
    /// The turn's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// `start`: who hosts the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// `start`: the client's word (`startup`, `resume`, `clear`, `compact`);
    /// `end`: its reason; `notify`: its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// `start` after `/clear`: the sid that this one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// `stop`: how many background tasks still run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_tasks: Option<u32>,
    /// `stop`: how many wakes are armed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_crons: Option<u32>,
}

/// What a line tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A process took the session up.
    Start,
    /// A prompt that a person wrote.
    Prompt,
    /// A prompt that a program wrote: a wake, a task notification.
    Injected,
    /// The client's own continuation after a limit, let through.
    NativeContinue,
    /// The client's own continuation after a limit, stopped: the session went on
    /// already.
    NativeStopped,
    /// A turn ended well.
    Stop,
    /// The client told something to the person.
    Notify,
    /// The session ended in this process.
    End,
    /// A word that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The process that hosts a session, and how it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// The client's pid.
    pub pid: i32,
    /// Its start time in clock ticks since boot; pids are reused.
    pub start: u64,
    /// The machine's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The pid namespace that `pid` counts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
    /// The folder it was started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The command line; bytes that are not UTF-8 are replaced, see `argv_lossy`.
    pub argv: Vec<String>,
    /// True where `argv` can't be used as it stands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub argv_lossy: bool,
    /// The executable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    /// The client's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What kind of session it is.
    pub kind: Kind,
    /// tmux's socket path, where it runs in a pane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmux_socket: Option<String>,
    /// tmux's pane id, as `%3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmux_pane: Option<String>,
    /// The credential shard, where the session runs on one of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The account the shard pointed to at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// What kind of session it is; it decides how it can be continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// In a terminal.
    Terminal,
    /// Started with `--bg`.
    Background,
    /// Driven by a program over stream-json.
    StreamJson,
    /// One prompt with `-p`; the process ends with the turn.
    OneShot,
    /// Nobody could tell.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Kind {
    /// Whether a wake in place can reach the session at all.
    pub fn can_be_waked(self) -> bool {
        matches!(self, Self::Terminal | Self::Background | Self::StreamJson)
    }

    /// The kind, from the client's command line and the hook's environment.
    ///
    /// A stream-json session has the same environment as a one-shot `-p`; its
    /// options tell them apart (measured, 2.1.332).
    pub fn of(argv: &[impl AsRef<str>], is_background: bool) -> Self {
        if is_background {
            return Self::Background;
        }
        let words = || argv.iter().map(AsRef::as_ref);
        let is_print = words().any(|word| word == "-p" || word == "--print");
        let streams = words().any(|word| word == "--input-format=stream-json")
            || words()
                .zip(words().skip(1))
                .any(|pair| pair == ("--input-format", "stream-json"));
        match (is_print, streams) {
            _ if argv.is_empty() => Self::Unknown,
            (_, true) => Self::StreamJson,
            (true, false) => Self::OneShot,
            (false, false) => Self::Terminal,
        }
    }
}

/// A prompt as the lease saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSeen {
    /// The turn's id; absent where the client gave none.
    pub prompt_id: Option<String>,
    /// When (ms since 1970).
    pub at: i64,
}

/// The lease, folded from its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The newest host.
    pub host: Option<Host>,
    /// When that host took it up.
    pub host_at: i64,
    /// The sid that this session follows after `/clear`.
    pub follows: Option<String>,
    /// The newest prompt of any author.
    pub last_prompt: Option<PromptSeen>,
    /// The newest prompt that a person wrote.
    pub last_human_prompt: Option<PromptSeen>,
    /// The newest good end of a turn (ms since 1970).
    pub last_stop_at: Option<i64>,
    /// The turn that ended well last.
    pub last_stop_prompt_id: Option<String>,
    /// Why and when the session ended, if no later line shows it going on.
    pub ended: Option<(String, i64)>,
    /// What the client last told the person it waits for, until the next prompt
    /// or good stop.
    pub waiting: Option<String>,
    /// When the newest line was written.
    pub renewed_at: i64,
    /// Lines that could not be read or are of a newer format.
    pub unread_lines: usize,
}

impl Lease {
    /// Folds the tail of a lease file. A first line that was cut is passed over
    /// when `whole` is false, a last one without its line end always.
    pub fn fold(bytes: &[u8], whole: bool) -> Self {
        let mut lease = Self::default();
        let mut rest = bytes;
        let mut is_cut = !whole;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            if std::mem::take(&mut is_cut) || line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Line>(line) {
                Ok(line) if line.format <= FORMAT => lease.take(line),
                _ => lease.unread_lines += 1,
            }
        }
        lease
    }

    fn take(&mut self, line: Line) {
        self.renewed_at = self.renewed_at.max(line.at);
        let seen = || PromptSeen {
            prompt_id: line.prompt_id.clone(),
            at: line.at,
        };
        match line.event {
            Event::Start => {
                if line.host.is_some() {
                    self.host = line.host;
                    self.host_at = line.at;
                }
                if line.follows.is_some() {
                    self.follows = line.follows;
                }
                self.ended = None;
            }
            Event::Prompt => {
                self.last_prompt = Some(seen());
                self.last_human_prompt = Some(seen());
                self.waiting = None;
                self.ended = None;
            }
            Event::Injected | Event::NativeContinue => {
                self.last_prompt = Some(seen());
                self.waiting = None;
                self.ended = None;
            }
            Event::Stop => {
                self.last_stop_at = Some(line.at);
                self.last_stop_prompt_id = line.prompt_id;
                self.waiting = None;
            }
            Event::Notify => self.waiting = line.what,
            Event::End => self.ended = Some((line.what.unwrap_or_default(), line.at)),
            Event::NativeStopped | Event::Unknown => {}
        }
    }
}

/// The lines of a large lease that still tell something: the newest of each kind
/// and of each fact that only some lines carry, then the last `recent_bytes` as
/// they are. `None` where a line is of a newer format: what it means, and whether
/// it may go, is not known. `whole` as in [`Lease::fold`].
pub fn shorten(bytes: &[u8], whole: bool, recent_bytes: usize) -> Option<Vec<u8>> {
    let recent_from = bytes.len().saturating_sub(recent_bytes);
    let mut kept: Vec<(Keep, &[u8])> = Vec::new();
    let mut recent = Vec::with_capacity(recent_bytes);
    let mut at = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let from = at;
        at += line.len();
        if index == 0 && !whole {
            continue;
        }
        // A torn line at the very end may still be on its way.
        let parsed = serde_json::from_slice::<Line>(line).ok();
        if parsed.as_ref().is_some_and(|line| line.format > FORMAT) {
            return None;
        }
        if from >= recent_from {
            recent.extend_from_slice(line);
            continue;
        }
        let Some(parsed) = parsed else { continue };
        let keep = Keep {
            event: parsed.event,
            has_host: parsed.host.is_some(),
            has_follows: parsed.follows.is_some(),
        };
        kept.retain(|(other, _)| *other != keep);
        kept.push((keep, line));
    }
    let older = kept.iter().map(|(_, line)| *line);
    Some(older.chain([recent.as_slice()]).collect::<Vec<_>>().concat())
}

/// What makes two lines tell the same, so that the newer one is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Keep {
    event: Event,
    has_host: bool,
    has_follows: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<u8> {
        let mut bytes = text.join("\n").into_bytes();
        bytes.push(b'\n');
        bytes
    }

    #[test]
    fn the_newest_line_of_each_kind_counts() {
        let bytes = lines(&[
            r#"{"format":1,"at":1,"event":"start","host":{"pid":7,"start":70}}"#,
            r#"{"format":1,"at":2,"event":"prompt","prompt_id":"p1"}"#,
            r#"{"format":1,"at":3,"event":"stop","prompt_id":"p1"}"#,
            r#"{"format":1,"at":4,"event":"injected","prompt_id":"p2","later":{"a":1}}"#,
        ]);
        let lease = Lease::fold(&bytes, true);
        assert_eq!(lease.host.map(|host| (host.pid, host.start)), Some((7, 70)));
        assert_eq!(
            lease.last_prompt.and_then(|seen| seen.prompt_id).as_deref(),
            Some("p2")
        );
        assert_eq!(
            lease.last_human_prompt.and_then(|seen| seen.prompt_id).as_deref(),
            Some("p1")
        );
        assert_eq!(
            (lease.last_stop_at, lease.renewed_at, lease.unread_lines),
            (Some(3), 4, 0)
        );
    }

    #[test]
    fn torn_cut_and_newer_lines_lose_only_themselves() {
        let mut bytes = lines(&[
            r#"ut off the front","event":"end"}"#,
            r#"{"format":1,"at":2,"event":"prompt","prompt_id":"p1"}"#,
            r#"{"format":2,"at":3,"event":"prompt","prompt_id":"p2"}"#,
            r#"{"format":1,"at":3,"event":"dance"}"#,
            "garbage",
        ]);
        bytes.extend_from_slice(br#"{"format":1,"at":9,"event":"st"#);
        let lease = Lease::fold(&bytes, false);
        assert_eq!(
            lease.last_prompt.and_then(|seen| seen.prompt_id).as_deref(),
            Some("p1")
        );
        assert_eq!((lease.unread_lines, lease.ended), (2, None));
    }

    #[test]
    fn an_end_holds_until_the_session_is_seen_again() {
        let end = r#"{"format":1,"at":2,"event":"end","what":"clear"}"#;
        assert_eq!(Lease::fold(&lines(&[end]), true).ended, Some(("clear".into(), 2)));
        let again = lines(&[end, r#"{"format":1,"at":3,"event":"start","what":"resume"}"#]);
        assert_eq!(Lease::fold(&again, true).ended, None);
    }

    #[test]
    fn a_shortened_lease_tells_the_same() {
        let words = [
            r#""event":"start","host":{"pid":7,"start":70}"#,
            r#""event":"start","host":{"pid":8,"start":80},"follows":"s0""#,
            r#""event":"start","what":"compact""#,
            r#""event":"prompt""#,
            r#""event":"injected""#,
            r#""event":"native-continue""#,
            r#""event":"native-stopped""#,
            r#""event":"stop""#,
            r#""event":"notify","what":"idle_prompt""#,
            r#""event":"end","what":"other""#,
        ];
        // Every order of kinds that a small generator comes upon.
        let mut seed = 7_u64;
        for round in 0..400 {
            let mut text = String::new();
            for at in 0..60 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
                // The first lines tell the rare facts, the later ones push them out.
                let word = words[usize::try_from(seed >> 33).unwrap() % words.len()];
                let line = format!("{{\"format\":1,\"at\":{at},{word},\"prompt_id\":\"p{at}\"}}\n");
                text.push_str(&line);
            }
            for recent in [0, 200, 1000] {
                let short = shorten(text.as_bytes(), true, recent).unwrap();
                assert_eq!(
                    Lease::fold(&short, true),
                    Lease::fold(text.as_bytes(), true),
                    "{text}"
                );
                assert!(short.len() < recent + 11 * 130, "{}", short.len());
            }
        }
    }

    #[test]
    fn what_is_torn_goes_and_what_is_newer_stays() {
        let torn = b"ut off\n{\"format\":1,\"at\":1,\"event\":\"stop\"}\ngarb\n{\"form";
        assert_eq!(
            shorten(torn, false, 0).unwrap(),
            b"{\"format\":1,\"at\":1,\"event\":\"stop\"}\n"
        );
        assert_eq!(
            shorten(b"{\"format\":2,\"at\":1,\"event\":\"stop\"}\n", true, 0),
            None
        );
    }

    #[test]
    fn kinds_by_command_line() {
        let cases: [(&[&str], bool, Kind); 7] = [
            (&["claude"], false, Kind::Terminal),
            (&["claude", "--model", "opus"], false, Kind::Terminal),
            (&["claude", "-p", "hi"], false, Kind::OneShot),
            (
                &["claude", "-p", "--input-format", "stream-json"],
                false,
                Kind::StreamJson,
            ),
            (
                &["claude", "--print", "--input-format=stream-json"],
                false,
                Kind::StreamJson,
            ),
            (&["claude", "bg-spare"], true, Kind::Background),
            (&[], false, Kind::Unknown),
        ];
        for (argv, is_background, kind) in cases {
            assert_eq!(Kind::of(argv, is_background), kind, "{argv:?}");
        }
    }
}
