//! What is wrong with a session, and what would cure it.
//!
//! One classifier for the whole system, so that no two parts can disagree. It
//! reads in one order: is it this session; is it the main conversation; is the
//! newest thing there a failure; what do the structured marks say; what does
//! the sentence say, where an old client wrote nothing else. What it cannot
//! place is `unknown`, and unknown means hands off.

use std::fmt;

use serde::Serialize;

use super::failure::{self, Failure};
use super::hook_payload::Payload;
use super::observed::{self, Observed};
use super::reset_time;
use super::transcript::{Tail, Turn};

/// What state the session is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It works, or ended its turn well.
    Ok,
    /// Every further turn in this process would fail; a new process heals it.
    Wedge,
    /// The stored conversation itself is refused; a new process does not help.
    Poisoned,
    /// The account's limit is used up.
    Walled,
    /// The login is dead or refused.
    Credential,
    /// It passes by itself.
    Transient,
    /// A person's business, or not this session's failure.
    NotForUs,
    /// Nobody can tell.
    #[default]
    Unknown,
}

/// The window of the account that is used up, in the client's own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The session limit.
    FiveHour,
    /// The weekly limit.
    SevenDay,
    /// The weekly limit of one model.
    SevenDayOpus,
    /// The weekly limit of one model.
    SevenDaySonnet,
    /// The premium model's week.
    SevenDayOverageIncluded,
    /// The weekly limit of third-party applications.
    SevenDayOauthApps,
    /// Paid extra usage, credits, a spend limit.
    Overage,
}

impl Window {
    /// From `rateLimitType`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "five_hour" => Self::FiveHour,
            "seven_day" => Self::SevenDay,
            "seven_day_opus" => Self::SevenDayOpus,
            "seven_day_sonnet" => Self::SevenDaySonnet,
            "seven_day_overage_included" => Self::SevenDayOverageIncluded,
            "seven_day_oauth_apps" => Self::SevenDayOauthApps,
            "overage" => Self::Overage,
            _ => return None,
        })
    }
}

/// The cheapest cure for the kind. Whoever acts still weighs the cost: a wall
/// that resets within minutes is waited out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heal {
    /// Hands off.
    #[default]
    None,
    /// Let it pass, then wake.
    Wait,
    /// One more turn in place.
    Wake,
    /// The same session in a new process.
    Restart,
    /// A person mends the conversation; nothing here edits a transcript.
    Repair,
    /// Another account.
    MoveAccount,
    /// A new login, or a sibling's refreshed one.
    RefreshCredential,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Heal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The classifier's answer. The default is the harmless one.
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// What state the session is in.
    pub verdict: Verdict,
    /// Of a wall: the window, where it is known.
    pub window: Option<Window>,
    /// Of a wall: epoch seconds, where it is known.
    pub resets_at: Option<i64>,
    /// The cheapest cure.
    pub heal: Heal,
    /// A short stable name, such as `five-hour-wall`.
    pub kind: &'static str,
    /// What makes two failures the same one: the kind, and the place that the
    /// API complained about. `None` where nothing failed.
    pub fingerprint: Option<String>,
    /// What a person can do, for kinds that nothing heals.
    pub recipe: Option<&'static str>,
    /// The reason, in a sentence.
    pub why: String,
}

impl Diagnosis {
    /// A diagnosis without window, reset or recipe.
    pub(super) fn plain(verdict: Verdict, heal: Heal, kind: &'static str, why: impl Into<String>) -> Self {
        Self {
            verdict,
            heal,
            kind,
            why: why.into(),
            ..Self::default()
        }
    }
}

/// Everything the classifier may look at.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'e> {
    /// What the hook was told, if a hook asks.
    pub payload: Option<&'e Payload<'e>>,
    /// The end of the transcript; empty where there is none.
    pub tail: &'e Tail<'e>,
    /// What is known of the process, if somebody looked.
    pub observed: Option<&'e Observed>,
    /// Epoch milliseconds.
    pub now_ms: i64,
    /// The machine's zone, an IANA name. Without one, the observed, then UTC.
    pub zone: Option<&'e str>,
}

/// How long after its reset a wall is taken for over: the client's own continue
/// comes up to about two minutes after it (measured, 2.1.332), and counters were
/// seen to lag by five (link-assistant/hive-mind#1152).
const WALL_OVER_AFTER_S: i64 = 600;

/// Decides from everything there is.
pub fn diagnose(evidence: Evidence<'_>) -> Diagnosis {
    if let Some(answer) = by_payload_alone(evidence) {
        return answer;
    }
    if evidence
        .observed
        .is_some_and(|observed| observed.pending_prompt == Some(true))
    {
        return waits_on_person("A prompt for a person is open.");
    }
    let failed = evidence.payload.filter(|payload| payload.is_event("StopFailure"));
    match (evidence.tail.turn(), failed) {
        (Turn::Failed(at) | Turn::CompactionFailed(at), _) => by_failed_line(evidence, at),
        (Turn::Interrupted, _) => not_for_us("interrupted", "A person stopped the turn."),
        (Turn::AsksPerson, _) => waits_on_person("The model asked a person and waits for the answer."),
        (Turn::Ended, Some(_)) => not_for_us(
            "helper",
            "The main conversation ended well: the failure is a helper's or a sub-agent's \
             (anthropics/claude-code#91419).",
        ),
        (Turn::ToolOpen(tools), Some(_)) if evidence.tail.sub_agent_failed() || runs_agent(&tools) => {
            not_for_us(
                "sub-agent",
                "The main conversation waits for a sub-agent, whose failure it is.",
            )
        }
        // The failed line is not on disk yet: up to 0.2 s later than the hook.
        (_, Some(payload)) => by_payload(payload, evidence),
        (turn, None) if evidence.payload.is_some_and(|payload| payload.is_event("Stop")) => {
            let observed = evidence.observed.filter(|_| turn == Turn::Ended);
            observed::judge(&Turn::Ended, evidence.tail, observed, evidence.now_ms)
        }
        (turn, None) => observed::judge(&turn, evidence.tail, evidence.observed, evidence.now_ms),
    }
}

/// Decides from a hook's payload without looking at the transcript. For the
/// moment at which a wake has to be quick; look at the whole afterwards.
pub fn diagnose_payload(payload: &Payload<'_>, now_ms: i64, zone: Option<&str>) -> Diagnosis {
    let evidence = Evidence {
        payload: Some(payload),
        tail: &Tail::default(),
        observed: None,
        now_ms,
        zone,
    };
    diagnose(evidence)
}

fn by_payload_alone(evidence: Evidence<'_>) -> Option<Diagnosis> {
    let payload = evidence.payload?;
    if let (Some(told), Some(read)) = (payload.session_id.as_deref(), evidence.tail.session_id())
        && told != read
    {
        let why = "The payload and the transcript belong to different sessions.";
        return Some(Diagnosis::plain(
            Verdict::Unknown,
            Heal::None,
            "another-session",
            why,
        ));
    }
    if payload.is_subagent() {
        return Some(not_for_us(
            "sub-agent",
            "A sub-agent failed; the session itself goes on.",
        ));
    }
    match payload.notification_type.as_deref()? {
        "quota_auto_resume_fired" => Some(not_for_us(
            "native-continue",
            "The client has just continued by itself; a second continuation would double it.",
        )),
        "permission_prompt"
        | "agent_needs_input"
        | "elicitation_dialog"
        | "elicitation_url_dialog"
        | "worker_permission_prompt" => Some(waits_on_person("The client waits for a person.")),
        _ => None,
    }
}

fn runs_agent(tools: &[String]) -> bool {
    tools.iter().any(|tool| matches!(tool.as_str(), "Agent" | "Task"))
}

fn by_payload(payload: &Payload<'_>, evidence: Evidence<'_>) -> Diagnosis {
    let failure = Failure::from_payload(payload, evidence.now_ms);
    judge_failure(&failure, evidence, 1)
}

fn by_failed_line(evidence: Evidence<'_>, at: usize) -> Diagnosis {
    let Some(line) = evidence.tail.lines.get(at) else {
        return Diagnosis::default();
    };
    let failure = Failure::from_line(line, evidence.now_ms);
    let print = failure.fingerprint();
    let prompts = evidence.tail.failures_in_a_row(|other| {
        other.error == line.error && Failure::from_line(other, evidence.now_ms).fingerprint() == print
    });
    judge_failure(&failure, evidence, prompts)
}

/// `prompts` is on how many prompts in a row the same failure was seen.
fn judge_failure(failure: &Failure<'_>, evidence: Evidence<'_>, prompts: usize) -> Diagnosis {
    let observed = evidence.observed;
    let zone = evidence
        .zone
        .or_else(|| observed.and_then(|observed| observed.tz.as_deref()));
    let mut answer = failure::classify(failure, zone, prompts);
    if prompts > 1 {
        answer.why = format!("{} Seen on {prompts} prompts in a row.", answer.why);
    }
    let mut answer = match answer.verdict {
        Verdict::Walled if is_over(&answer, failure, evidence) => Diagnosis {
            verdict: Verdict::Wedge,
            heal: Heal::Restart,
            kind: "wall-over",
            why: "The limit has reset since, and nothing has run: the client's own continue did not come \
                  (anthropics/claude-code#91535)."
                .into(),
            ..answer
        },
        Verdict::Credential if answer.kind == "login" && was_login_renewed(evidence) => Diagnosis {
            verdict: Verdict::Wedge,
            heal: Heal::Restart,
            kind: "login-not-reread",
            why: "The login was renewed since; this process keeps the old one \
                  (anthropics/claude-code#15007)."
                .into(),
            ..answer
        },
        Verdict::Wedge if observed.is_some_and(|observed| observed.was_restarted_for(answer.kind)) => {
            Diagnosis {
                verdict: Verdict::Poisoned,
                heal: Heal::Repair,
                why: format!(
                    "{} A restart was already spent on it and changed nothing.",
                    answer.why
                ),
                ..answer
            }
        }
        _ => answer,
    };
    answer.fingerprint = Some(match failure.fingerprint() {
        Some(place) => format!("{}@{place}", answer.kind),
        None => answer.kind.to_owned(),
    });
    answer
}

fn was_login_renewed(evidence: Evidence<'_>) -> bool {
    let seen = evidence.observed.and_then(|observed| observed.login_renewed);
    seen.unwrap_or_else(|| evidence.tail.logged_in_since())
}

/// A refusal after the stated reset is a wall still: counters have been enforced
/// past it (anthropics/claude-code#85259).
fn is_over(answer: &Diagnosis, failure: &Failure<'_>, evidence: Evidence<'_>) -> bool {
    // The client says itself that the reset came and that it does not go on.
    let stale = evidence
        .payload
        .and_then(|payload| payload.notification_type.as_deref())
        == Some("quota_auto_resume_stale");
    let after = if stale { 0 } else { WALL_OVER_AFTER_S };
    answer.resets_at.is_some_and(|reset| {
        failure.said_at_ms.div_euclid(1000) < reset && evidence.now_ms.div_euclid(1000) > reset + after
    })
}

fn not_for_us(kind: &'static str, why: &str) -> Diagnosis {
    Diagnosis::plain(Verdict::NotForUs, Heal::None, kind, why)
}

fn waits_on_person(why: &str) -> Diagnosis {
    not_for_us("waits-on-person", why)
}

/// The time of a transcript line in epoch milliseconds.
pub(super) fn time_ms(timestamp: Option<&str>) -> Option<i64> {
    timestamp.and_then(reset_time::from_rfc3339)
}

#[cfg(test)]
#[path = "diagnosis_tests.rs"]
mod tests;
