//! The error answers of the API, with the texts and headers that the service
//! sends. What the client makes of each was measured on 2.1.332
//! (docs/claude-code-facts.md).

use std::time::SystemTime;

use super::clock::epoch_s;

/// The limit that a wall stands for, as the representative claim names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The rolling five hours: "You've hit your 5-hour limit".
    FiveHour,
    /// The week: "You've hit your weekly limit".
    SevenDay,
    /// The week of one model family.
    SevenDayOpus,
}

impl Window {
    fn claim(self) -> &'static str {
        match self {
            Window::FiveHour => "five_hour",
            Window::SevenDay => "seven_day",
            Window::SevenDayOpus => "seven_day_opus",
        }
    }
}

/// One error answer: status, error type, message and headers.
#[derive(Debug, Clone)]
pub struct Failure {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Failure {
    /// An error answer of any status, type and message.
    pub fn new(status: u16, kind: &'static str, message: &str) -> Failure {
        Failure {
            status,
            kind,
            message: message.to_owned(),
            headers: Vec::new(),
        }
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Failure {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A usage limit of the plan, rejected by the unified rate limiter.
    pub fn wall(window: Window, resets_at: SystemTime) -> Failure {
        let reset = epoch_s(resets_at);
        let now = epoch_s(SystemTime::now());
        let claim = window.claim();
        let (five, seven) = match window {
            Window::FiveHour => (("rejected", reset, "1.0"), ("allowed", now + 300_000, "0.61")),
            Window::SevenDay | Window::SevenDayOpus => {
                (("allowed", now + 7_200, "0.42"), ("rejected", reset, "1.0"))
            }
        };
        let mut failure = Failure::new(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        )
        .header("retry-after", &reset.saturating_sub(now).to_string())
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", &reset.to_string())
        .header("anthropic-ratelimit-unified-representative-claim", claim)
        .header("anthropic-ratelimit-unified-fallback-percentage", "0.5");
        for (name, (status, reset, used)) in [("5h", five), ("7d", seven)] {
            let prefix = format!("anthropic-ratelimit-unified-{name}");
            failure = failure
                .header(&format!("{prefix}-status"), status)
                .header(&format!("{prefix}-reset"), &reset.to_string())
                .header(&format!("{prefix}-utilization"), used);
        }
        failure
    }

    /// The wall's answer when paid overage exists but is refused too.
    #[must_use]
    pub fn overage_rejected(self, reason: &str) -> Failure {
        self.header("anthropic-ratelimit-unified-overage-status", "rejected")
            .header("anthropic-ratelimit-unified-overage-disabled-reason", reason)
    }

    /// A throttle of the service: 429 without the unified headers. Not a wall.
    pub fn throttle() -> Failure {
        Failure::new(
            429,
            "rate_limit_error",
            "Number of request tokens has exceeded your per-minute rate limit",
        )
        .header("retry-after", "1")
    }

    /// 401: the key or token is not one that the service knows.
    pub fn unauthorized() -> Failure {
        Failure::new(401, "authentication_error", "invalid x-api-key")
    }

    /// 401: the access token has expired.
    pub fn token_expired() -> Failure {
        Failure::new(
            401,
            "authentication_error",
            "OAuth token has expired. Please obtain a new token or refresh your existing token.",
        )
    }

    /// 403 (or 401 in old services): the login was revoked.
    pub fn token_revoked() -> Failure {
        Failure::new(
            401,
            "authentication_error",
            "OAuth token has been revoked. Please obtain a new token.",
        )
    }

    /// 403: subscription logins are not allowed for this organization.
    pub fn oauth_not_allowed() -> Failure {
        Failure::new(
            403,
            "permission_error",
            "OAuth authentication is currently not allowed for this organization.",
        )
    }

    /// 403: the organization is disabled.
    pub fn org_disabled() -> Failure {
        Failure::new(403, "permission_error", "This organization has been disabled.")
    }

    /// 400: an account that pays by use has nothing left.
    pub fn credit_low() -> Failure {
        Failure::bad_request(
            "Your credit balance is too low to access the Anthropic API. \
             Please go to Plans & Billing to upgrade or purchase credits.",
        )
    }

    /// 400: the conversation does not fit the context window.
    pub fn prompt_too_long() -> Failure {
        Failure::bad_request("prompt is too long: 212000 tokens > 200000 maximum")
    }

    /// 400: an image in the conversation is too large.
    pub fn image_too_large() -> Failure {
        Failure::bad_request(
            "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: \
             6000000 bytes > 5242880 bytes",
        )
    }

    /// 400: a signed thinking block came back changed (anthropics/claude-code#10199).
    pub fn thinking_modified() -> Failure {
        Failure::bad_request(
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest \
             assistant message cannot be modified. These blocks must remain as they were in \
             the original response.",
        )
    }

    /// 400: a tool call without its result.
    pub fn tool_use_orphan() -> Failure {
        Failure::bad_request(
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately \
             after: toolu_mock0001. Each `tool_use` block must have a corresponding \
             `tool_result` block in the next message.",
        )
    }

    /// 400: a tool result without its call.
    pub fn tool_result_orphan() -> Failure {
        Failure::bad_request(
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
             toolu_mock0001. Each `tool_result` block must have a corresponding `tool_use` \
             block in the previous message.",
        )
    }

    /// 404: the model does not exist for this account.
    pub fn model_not_found() -> Failure {
        Failure::new(404, "not_found_error", "model: claude-nonexistent")
    }

    /// 413: the request body is too large.
    pub fn too_large() -> Failure {
        Failure::new(413, "request_too_large", "Request exceeds the maximum size")
    }

    /// 500: the service failed.
    pub fn internal() -> Failure {
        Failure::new(500, "api_error", "Internal server error")
    }

    /// 529: the service is overloaded.
    pub fn overloaded() -> Failure {
        Failure::new(529, "overloaded_error", "Overloaded")
    }

    fn bad_request(message: &str) -> Failure {
        Failure::new(400, "invalid_request_error", message)
    }
}

/// The headers of a 200 that tell how much of each window is used (0.0 to 1.0)
/// and when it resets.
pub fn quota_headers(five_hour: (f64, SystemTime), seven_day: (f64, SystemTime)) -> Vec<(String, String)> {
    let mut headers = vec![
        (
            "anthropic-ratelimit-unified-status".to_owned(),
            "allowed".to_owned(),
        ),
        (
            "anthropic-ratelimit-unified-representative-claim".to_owned(),
            "five_hour".to_owned(),
        ),
        (
            "anthropic-ratelimit-unified-reset".to_owned(),
            epoch_s(five_hour.1).to_string(),
        ),
    ];
    for (name, (used, resets_at)) in [("5h", five_hour), ("7d", seven_day)] {
        let prefix = format!("anthropic-ratelimit-unified-{name}");
        headers.push((format!("{prefix}-status"), "allowed".to_owned()));
        headers.push((format!("{prefix}-reset"), epoch_s(resets_at).to_string()));
        headers.push((format!("{prefix}-utilization"), used.to_string()));
    }
    headers
}
