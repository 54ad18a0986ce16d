//! The kinds of failure in which a turn can end, from narrow to wide.
//!
//! The client's own marks decide before any sentence. Sentences were collected
//! from public reports over two years of versions; only their unchanging parts
//! are compared, in lower case.

use super::diagnosis::{Diagnosis, Heal, Verdict, Window, time_ms};
use super::hook_payload::Payload;
use super::reset_time;
use super::transcript::{Line, QuotaLimits};

/// A failed turn as its transcript line or its hook payload tells it.
#[derive(Debug, Clone)]
pub(super) struct Failure<'f> {
    error: Option<&'f str>,
    api_error: Option<&'f str>,
    status: Option<i64>,
    is_transient: bool,
    quota: Option<&'f QuotaLimits<'f>>,
    text: &'f str,
    /// Text and details in lower case, bounded, with plain apostrophes.
    words: String,
    /// When the failure was written, epoch milliseconds.
    pub(super) said_at_ms: i64,
}

/// More than any sentence needs. Details may quote a whole request.
const WORDS_MAX: usize = 4000;

impl<'f> Failure<'f> {
    pub(super) fn from_line(line: &'f Line<'f>, now_ms: i64) -> Self {
        // A failed `/compact` has its text in the line itself.
        let text = line.content.as_deref().unwrap_or_else(|| line.text());
        Self {
            error: line.error.as_deref(),
            api_error: line.api_error.as_deref(),
            status: line.api_error_status,
            is_transient: line.api_error_is_transient,
            quota: line.quota_limits.as_ref(),
            text,
            words: words(text, line.error_details.as_deref()),
            said_at_ms: time_ms(line.timestamp.as_deref()).unwrap_or(now_ms),
        }
    }

    pub(super) fn from_payload(payload: &'f Payload<'f>, now_ms: i64) -> Self {
        let text = payload.last_assistant_message.as_deref().unwrap_or_default();
        Self {
            error: payload.error.as_deref(),
            api_error: None,
            status: None,
            is_transient: false,
            quota: None,
            text,
            words: words(text, payload.error_details.as_deref()),
            said_at_ms: now_ms,
        }
    }

    /// The place in the request that the API named: `messages.41.content.31`,
    /// `column 12345`. The same place on two prompts is the same stored block.
    pub(super) fn fingerprint(&self) -> Option<String> {
        let dotted = |at: usize| -> String {
            let rest = self.words.get(at..).unwrap_or_default();
            let path = rest
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
                .next();
            // The rest of the path names the field, which wording may vary.
            path.unwrap_or_default()
                .split('.')
                .take(4)
                .collect::<Vec<_>>()
                .join(".")
        };
        let place = self
            .words
            .find("messages.")
            .map(dotted)
            .filter(|path| path.bytes().any(|b| b.is_ascii_digit()));
        place
            .map(|path| path.trim_end_matches('.').to_owned())
            .or_else(|| {
                let (_, rest) = self.words.split_once("column ")?;
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                (!digits.is_empty()).then(|| format!("column {digits}"))
            })
    }

    fn says(&self, fragment: &str) -> bool {
        self.words.contains(fragment)
    }

    fn says_any(&self, fragments: &[&str]) -> bool {
        fragments.iter().any(|fragment| self.says(fragment))
    }

    fn is(&self, error: &str) -> bool {
        self.error == Some(error)
    }

    /// No mark, or one that covers everything the client could not name.
    fn is_unnamed(&self) -> bool {
        matches!(self.error, None | Some("unknown"))
    }
}

fn words(text: &str, details: Option<&str>) -> String {
    let details = details.unwrap_or_default().chars().take(WORDS_MAX);
    let all = text
        .chars()
        .take(WORDS_MAX)
        .chain(std::iter::once('\n'))
        .chain(details);
    all.map(|c| {
        if c == '\u{2019}' {
            '\''
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

/// Names the failure. `prompts` is on how many prompts in a row it was seen.
pub(super) fn classify(failure: &Failure<'_>, zone: Option<&str>, prompts: usize) -> Diagnosis {
    persons_business(failure)
        .or_else(|| throttle(failure))
        .or_else(|| marked_wall(failure, zone))
        .or_else(|| poison(failure))
        .or_else(|| too_long(failure))
        .or_else(|| credential(failure))
        .or_else(|| worded_wall(failure, zone))
        .or_else(|| transient(failure))
        .or_else(|| refused_request(failure, prompts))
        .unwrap_or_else(|| {
            let why = "The turn failed in a way that is not known here.";
            Diagnosis::plain(Verdict::Unknown, Heal::None, "unknown-failure", why)
        })
}

/// What no process can decide or pay for.
fn persons_business(f: &Failure<'_>) -> Option<Diagnosis> {
    let (kind, why, recipe) = if f.says("went unanswered") && f.says("nothing was sent") {
        (
            "model-limit-consent",
            "The client asked whether to go on beyond the model's limit.",
            "Answer the prompt, or choose another model with /model.",
        )
    } else if f.says_any(&[
        "violate our usage policy",
        "safeguards flagged",
        "can't help with this. start a new session",
    ]) {
        (
            "policy-refusal",
            "The request was refused by policy, and a resume repeats it.",
            "Rewind to before the refused message, or start a new session.",
        )
    } else if f.is("max_output_tokens") || f.says("output token maximum") {
        (
            "max-output",
            "The answer was longer than its limit; the session itself is fine.",
            "Ask for it in parts, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.",
        )
    } else if f.is("billing_error") || f.says("credit balance is too low") {
        (
            "credit-balance",
            "Prepaid API money is used up; often a stray API key outranks the subscription.",
            "Unset ANTHROPIC_API_KEY to use the subscription, or add credit.",
        )
    } else if f.says_any(&[
        "belongs to a disabled organization",
        "disabled api key authentication",
    ]) || (f.says("invalid api key") && !f.says("please run /login"))
    {
        (
            "api-key",
            "An API key from the environment is refused, and it outranks every login.",
            "Unset or replace ANTHROPIC_API_KEY (or apiKeyHelper), then restart the session.",
        )
    } else if f.says_any(&[
        "ssl certificate",
        "certificate verification failed",
        "self-signed certificate",
        "self signed certificate",
        "unable to verify the first certificate",
    ]) {
        (
            "tls",
            "The machine does not trust the certificate it was shown.",
            "Check the proxy, or point NODE_EXTRA_CA_CERTS at its certificate.",
        )
    } else if f.is("model_not_found") || f.says("issue with the selected model") {
        (
            "model-not-found",
            "The chosen model does not exist for this account.",
            "Choose another model with /model; before 2.1.206 a dead login looked the same.",
        )
    } else if f.is("verification_required") {
        (
            "verification",
            "The account must be verified by its owner.",
            "Sign in on the web and follow the verification.",
        )
    } else {
        return None;
    };
    let plain = Diagnosis::plain(Verdict::NotForUs, Heal::None, kind, why);
    Some(Diagnosis {
        recipe: Some(recipe),
        ..plain
    })
}

fn throttle(f: &Failure<'_>) -> Option<Diagnosis> {
    let told = f.is_transient
        || f.says_any(&[
            "not your usage limit",
            "request rejected (429)",
            "spend limit unavailable",
        ]);
    told.then(|| {
        passes(
            "throttle",
            "The server limits requests for the moment; it is not the account's limit.",
        )
    })
}

fn marked_wall(f: &Failure<'_>, zone: Option<&str>) -> Option<Diagnosis> {
    let rejected = f
        .quota
        .filter(|quota| quota.status.as_deref() == Some("rejected"));
    if rejected.is_none() && f.api_error != Some("usage_limit_reached") {
        return None;
    }
    let said = Sentence::read(f, zone);
    let window = match rejected.and_then(|quota| quota.rate_limit_type.as_deref()) {
        // A name of a later client is no other window.
        Some(name) => Window::from_name(name),
        None => said.window,
    };
    let reset = rejected
        .and_then(|quota| quota.resets_at)
        .and_then(reset_time::from_number)
        .or(said.reset);
    Some(wall(
        window,
        reset,
        "The refusal names the limit that is used up.",
    ))
}

/// A wall by its sentence: where the client wrote no structure.
fn worded_wall(f: &Failure<'_>, zone: Option<&str>) -> Option<Diagnosis> {
    if !(f.is_unnamed() || f.is("rate_limit") || f.is("invalid_request")) {
        return None;
    }
    let said = Sentence::read(f, zone);
    if said.is_wall {
        return Some(wall(
            said.window,
            said.reset,
            "The sentence is that of a used-up limit.",
        ));
    }
    if !f.is("rate_limit") {
        return None;
    }
    if said.reset.is_some() {
        return Some(wall(
            said.window,
            said.reset,
            "A refused request with a time of reset is a used-up limit.",
        ));
    }
    Some(passes(
        "rate-limit",
        "A limit without window and reset: a throttle, or the client's own (anthropics/claude-code#40584).",
    ))
}

fn wall(window: Option<Window>, reset: Option<i64>, why: &str) -> Diagnosis {
    let kind = match window {
        Some(Window::FiveHour) => "five-hour-wall",
        Some(Window::SevenDay) => "weekly-wall",
        Some(Window::SevenDayOpus) => "weekly-opus-wall",
        Some(Window::SevenDaySonnet) => "weekly-sonnet-wall",
        Some(Window::SevenDayOverageIncluded) => "weekly-model-wall",
        Some(Window::SevenDayOauthApps) => "weekly-apps-wall",
        Some(Window::Overage) => "overage-wall",
        None => "plan-wall",
    };
    let plain = Diagnosis::plain(Verdict::Walled, Heal::MoveAccount, kind, why);
    Diagnosis {
        window,
        resets_at: reset,
        ..plain
    }
}

/// What a limit sentence says.
struct Sentence {
    is_wall: bool,
    window: Option<Window>,
    reset: Option<i64>,
}

impl Sentence {
    fn read(f: &Failure<'_>, zone: Option<&str>) -> Self {
        let reset = reset_time::from_sentence(f.text, f.said_at_ms, zone);
        if f.says("context limit") {
            return Self {
                is_wall: false,
                window: None,
                reset: None,
            };
        }
        let limit = |nouns: &[&str]| nouns.iter().any(|noun| f.says(&format!("{noun} limit")));
        // Not the account's plan: a workspace's money, a gateway's.
        let elsewhere = f.says_any(&[
            "workspace api usage limits",
            "you will regain access",
            "spend limit reached (",
        ]);
        let credits = f.says_any(&[
            "out of extra usage",
            "out of usage credits",
            "spend limit",
            "usage credit limit",
            "monthly usage limit",
            "org is out of usage",
            "seat type doesn't include usage credits",
            "service is disabled for your org",
        ]);
        let window = if elsewhere {
            None
        } else if credits {
            Some(Window::Overage)
        } else if limit(&["opus", "opus weekly"]) {
            Some(Window::SevenDayOpus)
        } else if limit(&["sonnet", "sonnet weekly"]) {
            Some(Window::SevenDaySonnet)
        } else if f.says("fable") && f.says("limit") {
            Some(Window::SevenDayOverageIncluded)
        } else if limit(&["weekly", "7-day"]) {
            Some(Window::SevenDay)
        } else if limit(&["session", "5-hour", "five-hour"]) || f.says("usage limit reached") {
            Some(Window::FiveHour)
        } else if limit(&["your"]) {
            // The old noun for either: only the distance tells.
            reset.map(|reset| {
                let distance_s = reset - f.said_at_ms.div_euclid(1000);
                if distance_s <= 5 * 3600 {
                    Window::FiveHour
                } else {
                    Window::SevenDay
                }
            })
        } else {
            None
        };
        let hit = f.says_any(&[
            "you've hit your",
            "you've reached your",
            "you have hit your",
            "you have reached your",
        ]);
        let is_wall = elsewhere
            || credits
            || (hit && f.says("limit"))
            || f.says("limit reached") && window.is_some()
            || f.says("would exceed your account's rate limit");
        Self {
            is_wall,
            window,
            reset,
        }
    }
}

const STRIP: &str = "Rewind (Esc Esc) to before the block was added; or start a newer client, which strips such \
                     blocks on load; or take the block out of the transcript with the session closed.";
const PAIR: &str = "Start a newer client, which pairs the calls on load; or rewind to before the broken call; or take \
                    its line out of the transcript with the session closed.";
const SHRINK: &str = "Rewind (Esc Esc) to before the attachment, or run /compact, or start a new session.";

/// A block that the API refuses, and how it says so.
struct Refusal {
    kind: &'static str,
    fragments: &'static [&'static str],
    why: &'static str,
    recipe: &'static str,
}

const REFUSALS: [Refusal; 10] = [
    Refusal {
        kind: "thinking-signature",
        fragments: &[
            "invalid `signature` in `thinking`",
            "bound to a different conversation",
        ],
        why: "A thinking block carries a signature of another account, model or conversation.",
        recipe: STRIP,
    },
    Refusal {
        kind: "thinking-modified",
        fragments: &[
            "`thinking` or `redacted_thinking` blocks",
            "thinking blocks cannot be modified",
            "expected `thinking`",
        ],
        why: "A stored thinking block is not as it was sent.",
        recipe: STRIP,
    },
    Refusal {
        kind: "tool-use-orphan",
        fragments: &["`tool_use` ids were found without", "tool use concurrency issues"],
        why: "A tool call is stored without its result.",
        recipe: PAIR,
    },
    Refusal {
        kind: "tool-result-orphan",
        fragments: &[
            "unexpected `tool_use_id` found in `tool_result`",
            "orphaned tool_result",
        ],
        why: "A tool's result is stored without its call.",
        recipe: PAIR,
    },
    Refusal {
        kind: "tool-use-duplicate",
        fragments: &["`tool_use` ids must be unique"],
        why: "Two stored tool calls have the same id.",
        recipe: PAIR,
    },
    Refusal {
        kind: "empty-text",
        fragments: &[
            "cannot be set for empty text",
            "content blocks must be non-empty",
            "must have non-empty content",
        ],
        why: "A stored message has an empty text.",
        recipe: STRIP,
    },
    Refusal {
        kind: "lone-surrogate",
        fragments: &[
            "low surrogate in string",
            "high surrogate in string",
            "lone surrogate",
        ],
        why: "A stored text holds half of a character.",
        recipe: STRIP,
    },
    Refusal {
        kind: "image",
        fragments: &[
            "image dimensions exceed",
            "exceeds the dimension limit",
            "image exceeds",
            "image was too large",
            "could not process image",
        ],
        why: "A stored image is refused.",
        recipe: STRIP,
    },
    Refusal {
        kind: "pdf",
        fragments: &[
            "pdf too large",
            "pdf is password protected",
            "pdf file was not valid",
        ],
        why: "A stored PDF is refused.",
        recipe: STRIP,
    },
    Refusal {
        kind: "request-too-large",
        fragments: &[
            "request_too_large",
            "request too large",
            "compacting cannot make it fit",
        ],
        why: "The conversation with its attachments is larger than a request may be.",
        recipe: SHRINK,
    },
];

/// Refusals of a block that is stored in the conversation: every further turn,
/// also in a new process, sends it again.
fn poison(f: &Failure<'_>) -> Option<Diagnosis> {
    if f.says_any(&["required for 1m context", "required for long context requests"]) {
        return Some(poisoned(
            "long-context-entitlement",
            "The conversation is longer than the account may send.",
            "Switch to a model with a small context (/model), send one message so that it compacts, switch back.",
        ));
    }
    if !(f.is_unnamed() || f.is("invalid_request")) {
        return None;
    }
    if let Some(found) = REFUSALS.iter().find(|refusal| f.says_any(refusal.fragments)) {
        return Some(poisoned(found.kind, found.why, found.recipe));
    }
    if f.status == Some(413) {
        return Some(poisoned(
            "request-too-large",
            "The request was refused for its size.",
            SHRINK,
        ));
    }
    (f.api_error == Some("tool_history_mismatch")).then(|| {
        poisoned(
            "tool-history",
            "Stored tool calls and results do not match.",
            PAIR,
        )
    })
}

fn poisoned(kind: &'static str, why: &str, recipe: &'static str) -> Diagnosis {
    Diagnosis {
        recipe: Some(recipe),
        ..Diagnosis::plain(Verdict::Poisoned, Heal::Repair, kind, why)
    }
}

/// Several people compacted fine in a new process on the same session
/// (anthropics/claude-code#9527, #7530), so a restart comes before a repair.
fn too_long(f: &Failure<'_>) -> Option<Diagnosis> {
    let fragments = [
        "prompt is too long",
        "input is too long",
        "context limit",
        "conversation too long",
        "error compacting conversation",
    ];
    f.says_any(&fragments).then(|| Diagnosis {
        recipe: Some("Rewind some messages (Esc Esc) and run /compact, or compact under a model with a larger context."),
        ..Diagnosis::plain(
            Verdict::Wedge,
            Heal::Restart,
            "prompt-too-long",
            "The conversation is too long and was not compacted in this process.",
        )
    })
}

fn credential(f: &Failure<'_>) -> Option<Diagnosis> {
    let refused = f.says_any(&[
        "not allowed for this organization",
        "disabled claude subscription access",
        "organization has been disabled",
        "can't use your claude subscription",
    ]);
    let (kind, heal, why) = if f.is("account_on_hold") {
        (
            "account-on-hold",
            Heal::MoveAccount,
            "The account is on hold; only another one can go on.",
        )
    } else if f.is("oauth_org_not_allowed") || refused {
        (
            "organization",
            Heal::MoveAccount,
            "The organisation or its plan does not let this login in; only another account can go on.",
        )
    } else if f.is("cloud_credential_error") || f.says("security token") {
        (
            "cloud-credential",
            Heal::Restart,
            "The cloud provider's credential is over, and the process keeps it (anthropics/claude-code#60938).",
        )
    } else if f.says("another claude code process is refreshing") {
        (
            "refresh-lock",
            Heal::RefreshCredential,
            "The lock of the token refresh is held, or was left by a process that died in it (anthropics/claude-code#95236).",
        )
    } else if f.is("authentication_failed")
        || f.status == Some(401)
        || (!f.is("server_error") && is_login_text(f))
    {
        (
            "login",
            Heal::RefreshCredential,
            "The login is dead or was used up by another session.",
        )
    } else {
        return None;
    };
    Some(Diagnosis::plain(Verdict::Credential, heal, kind, why))
}

fn is_login_text(f: &Failure<'_>) -> bool {
    f.says_any(&[
        "please run /login",
        "oauth token has expired",
        "oauth token revoked",
        "oauth token has been revoked",
        "failed to authenticate",
        "not logged in",
        "login expired",
        "missing api key",
        "session_stale_relogin",
        "authentication_error",
        "invalid api key",
    ])
}

fn transient(f: &Failure<'_>) -> Option<Diagnosis> {
    let named = f.is("server_error") || f.is("overloaded");
    if !named && (f.status == Some(400) || f.says("api error: 400")) {
        return None;
    }
    if !(named || f.is_unnamed() || f.status.is_some_and(|status| status >= 500)) {
        return None;
    }
    let connection = f.api_error == Some("connection_failed")
        || f.says_any(&[
            "connect to api",
            "connection dropped",
            "connection lost",
            "connection closed",
            "connection error",
            "can't reach the api",
            "no internet",
            "through your proxy",
            "socket",
            "econn",
            "enotfound",
            "eai_again",
            "epipe",
            "etimedout",
            "fetch failed",
            "terminated",
            "network error",
        ]);
    if f.is("overloaded") || f.status == Some(529) || f.says("overloaded") {
        Some(passes(
            "overloaded",
            "The API is at capacity; the client's own tries are used up.",
        ))
    } else if connection {
        Some(passes("connection", "The connection failed."))
    } else if f.says_any(&[
        "timed out",
        "timeout",
        "stalled",
        "went to sleep",
        "before a response was produced",
    ]) {
        Some(passes("timeout", "No answer came in time."))
    } else if named
        || f.status.is_some_and(|status| status >= 500 || status == 408)
        || f.says_any(&[
            "internal server error",
            "mid-response",
            "empty or malformed response",
            "temporarily unavailable",
        ])
    {
        Some(passes("server-error", "The API failed."))
    } else {
        None
    }
}

fn passes(kind: &'static str, why: &str) -> Diagnosis {
    Diagnosis::plain(Verdict::Transient, Heal::Wait, kind, why)
}

/// A refusal in words not seen before. It is the stored conversation when the
/// API names a place in it, or when it comes again on another prompt.
fn refused_request(f: &Failure<'_>, prompts: usize) -> Option<Diagnosis> {
    let refused =
        f.is("invalid_request") || (f.is_unnamed() && (f.status == Some(400) || f.says("api error: 400")));
    (refused && (f.fingerprint().is_some() || prompts > 1)).then(|| {
        poisoned(
            "invalid-request",
            "The API refuses the stored conversation.",
            STRIP,
        )
    })
}
