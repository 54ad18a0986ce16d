//! What is known of the process, and what it says about an open turn.
//!
//! A hung request, an idle loop, a stuck compaction and a runaway process leave
//! no line in the transcript: only the silence and the process tell. Each rule
//! waits longer than the client's own time limits, and a reading that is absent
//! never counts as one.

use serde::Deserialize;

use super::diagnosis::{Diagnosis, Heal, Verdict, time_ms};
use super::transcript::{Tail, Turn};

/// Readings of the process. An absent one was not taken.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// Whether the session's process lives.
    pub process_alive: Option<bool>,
    /// The process's own CPU use, in per cent of one core.
    pub cpu_pct: Option<f64>,
    /// How many child processes it has.
    pub children: Option<u32>,
    /// The children's CPU use together.
    pub child_cpu_pct: Option<f64>,
    /// Resident memory in megabytes.
    pub rss_mb: Option<f64>,
    /// Whether a question, permission or plan prompt is open.
    pub pending_prompt: Option<bool>,
    /// Whether the client shows that it compacts.
    pub compacting: Option<bool>,
    /// Process restarts of this session in the last 24 hours.
    pub restarts_today: Option<u32>,
    /// The kind for which the last of them was made.
    pub last_restart_for: Option<String>,
    /// Whether the login on disk was renewed after the failure.
    pub login_renewed: Option<bool>,
    /// The machine's zone, an IANA name.
    pub tz: Option<String>,
}

impl Observed {
    /// True when the last restart was made for this very kind.
    pub fn was_restarted_for(&self, kind: &str) -> bool {
        self.restarts_today.is_some_and(|restarts| restarts > 0)
            && self
                .last_restart_for
                .as_deref()
                .is_some_and(|last| last.replace('_', "-") == kind)
    }

    fn is_idle(&self) -> bool {
        self.cpu_pct.is_some_and(|cpu| cpu < 10.0)
    }

    fn children_work(&self) -> bool {
        self.child_cpu_pct.is_some_and(|cpu| cpu >= 5.0)
    }

    /// Reports: 11 to 129 GB, or 100 to 143 % of a core
    /// (anthropics/claude-code#11377, #4953, #23442).
    fn runs_away(&self, quiet_ms: i64) -> bool {
        let burns = self.cpu_pct.is_some_and(|cpu| cpu >= 90.0);
        let swollen = self.rss_mb.is_some_and(|rss| rss >= 8000.0);
        (burns && (swollen || quiet_ms >= BURNING_MS)) || self.rss_mb.is_some_and(|rss| rss >= 20_000.0)
    }
}

const MINUTE_MS: i64 = 60_000;
/// Longer than a request may hang before the client gives it up: twice five
/// minutes of an idle stream (measured, 2.1.332).
const HUNG_MS: i64 = 15 * MINUTE_MS;
/// The client ends an idle call of a local tool server after 30 minutes.
const TOOL_SERVER_MS: i64 = 35 * MINUTE_MS;
/// A core busy for this long without a line is no thinking.
const BURNING_MS: i64 = 30 * MINUTE_MS;
/// The longest time limit that a command can have, and some more.
const COMMAND_MS: i64 = 130 * MINUTE_MS;
/// This many compactions without anything between them get nowhere
/// (anthropics/claude-code#24179 saw 211).
const COMPACTIONS: usize = 3;

/// Judges a conversation whose newest line is no failure.
pub(super) fn judge(turn: &Turn, tail: &Tail<'_>, observed: Option<&Observed>, now_ms: i64) -> Diagnosis {
    let newest_ms = time_ms(tail.newest_timestamp());
    // Without a time no silence is proven, and no work either.
    let quiet_ms = newest_ms.map_or(0, |newest| now_ms.saturating_sub(newest));
    let open = !matches!(turn, Turn::Ended | Turn::Spoke | Turn::Unseen);
    if let Some(observed) = observed
        && let Some(wedge) = by_process(turn, tail, observed, quiet_ms, open)
    {
        return wedge;
    }
    match turn {
        Turn::Unseen => unknown("nothing-seen", "No line of the conversation could be read."),
        Turn::Ended | Turn::Spoke => ok("turn-ended", "The last turn ended well."),
        _ if tail.is_retrying() => ok("client-retries", "The client tries the request again by itself."),
        _ if newest_ms.is_some() && quiet_ms < HUNG_MS => ok("turn-runs", "A turn is under way."),
        _ => open_for_long(observed, quiet_ms),
    }
}

fn by_process(
    turn: &Turn,
    tail: &Tail<'_>,
    observed: &Observed,
    quiet_ms: i64,
    open: bool,
) -> Option<Diagnosis> {
    if observed.process_alive == Some(false) {
        return open.then(|| wedge("process-died", "The process is gone in the middle of a turn."));
    }
    // Nothing else counts before somebody saw the process alive.
    observed.process_alive?;
    if open && tail.compactions_in_a_row() >= COMPACTIONS {
        return Some(wedge(
            "compaction-loops",
            "It compacts again and again and gets nowhere.",
        ));
    }
    if quiet_ms < HUNG_MS || observed.children_work() {
        return None;
    }
    if observed.runs_away(quiet_ms) {
        return Some(wedge(
            "runaway",
            "The process burns memory or CPU and writes nothing.",
        ));
    }
    if !observed.is_idle() {
        return None;
    }
    if observed.compacting == Some(true) || tail.is_compacting() {
        return Some(wedge(
            "compaction-stalled",
            "A compaction began and never ended; the process idles.",
        ));
    }
    match turn {
        Turn::AwaitsModel => Some(wedge("request-hangs", "No answer came, and the process idles.")),
        Turn::ToolOpen(names) if names.iter().all(|name| name.starts_with("mcp__")) => {
            (quiet_ms >= TOOL_SERVER_MS).then(|| {
                wedge(
                    "tool-server-hangs",
                    "A tool server's call has no result, and the process idles.",
                )
            })
        }
        Turn::ToolOpen(names)
            if observed.children == Some(0) && names.iter().all(|name| needs_no_wait(name)) =>
        {
            Some(wedge(
                "tool-hangs",
                "A tool has no result, no child runs, and the process idles.",
            ))
        }
        Turn::Ended | Turn::Spoke if tail.queued_prompts() > 0 => Some(wedge(
            "queue-stuck",
            "A prompt waits in the queue, and the process idles.",
        )),
        _ => None,
    }
}

/// Tools that either run a child or are done at once. A sub-agent is neither.
fn needs_no_wait(tool: &str) -> bool {
    matches!(
        tool,
        "Bash"
            | "Read"
            | "Write"
            | "Edit"
            | "Glob"
            | "Grep"
            | "NotebookEdit"
            | "ToolSearch"
            | "WebFetch"
            | "WebSearch"
    )
}

fn open_for_long(observed: Option<&Observed>, quiet_ms: i64) -> Diagnosis {
    match observed {
        Some(observed) if observed.children_work() => ok("tool-works", "A tool's process is at work."),
        Some(observed) if observed.children.is_some_and(|children| children > 0) && quiet_ms < COMMAND_MS => {
            ok(
                "tool-runs",
                "A tool's process lives, within the longest time limit of a command.",
            )
        }
        _ => unknown(
            "turn-open",
            "A turn has been open for long, and nothing seen of the process explains it.",
        ),
    }
}

fn ok(kind: &'static str, why: &str) -> Diagnosis {
    Diagnosis::plain(Verdict::Ok, Heal::None, kind, why)
}

fn unknown(kind: &'static str, why: &str) -> Diagnosis {
    Diagnosis::plain(Verdict::Unknown, Heal::None, kind, why)
}

fn wedge(kind: &'static str, why: &str) -> Diagnosis {
    Diagnosis {
        fingerprint: Some(kind.to_owned()),
        ..Diagnosis::plain(Verdict::Wedge, Heal::Restart, kind, why)
    }
}
