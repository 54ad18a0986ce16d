//! Variables and settings that outrank the account stores, or keep the hooks
//! from being called. Values that may be secret are never read, only their
//! presence.

use std::path::Path;

use serde_json::Value;
use shared::edge::env;

use super::levels::Levels;
use super::{Finding, Looked};

pub(super) fn check(looked: &Looked) -> Vec<Finding> {
    vec![watchdog(looked), outranked(looked), shard(looked)]
}

/// Where a variable is set: the environment, or the `env` block of a level.
fn set_in(looked: &Looked, key: &str) -> Vec<String> {
    let mut places = Vec::new();
    if env::is_set(key) {
        places.push("the environment".to_owned());
    }
    for (level, value) in looked.levels.values() {
        if Levels::env(value, key).is_some_and(|value| value.as_str() != Some("")) {
            places.push(level.path.display().to_string());
        }
    }
    places
}

fn looked_at(looked: &Looked) -> String {
    format!("looked at the environment and {}", looked.levels.seen())
}

fn watchdog(looked: &Looked) -> Finding {
    let check = "retry watchdog";
    let key = env::CLAUDE_CODE_RETRY_WATCHDOG;
    let places = set_in(looked, key);
    if places.is_empty() {
        return unless_unread(looked, check, format!("{key} is not set; {}", looked_at(looked)));
    }
    Finding::wrong(
        check,
        format!(
            "{key} is set in {}: the client sleeps out a limit inside the request and calls no hook",
            places.join(" and ")
        ),
        format!("unset {key} there"),
    )
}

fn outranked(looked: &Looked) -> Finding {
    let check = "stores in charge";
    let mut found = Vec::new();
    for key in [
        env::ANTHROPIC_API_KEY,
        env::ANTHROPIC_AUTH_TOKEN,
        env::CLAUDE_CODE_OAUTH_TOKEN,
    ] {
        for place in set_in(looked, key) {
            found.push(format!("{key} in {place}"));
        }
    }
    for (level, value) in looked.levels.values() {
        if value.get("apiKeyHelper").is_some_and(|value| !value.is_null()) {
            found.push(format!("apiKeyHelper in {}", level.path.display()));
        }
    }
    if found.is_empty() {
        return unless_unread(
            looked,
            check,
            format!(
                "no key or token outranks the account stores; {}",
                looked_at(looked)
            ),
        );
    }
    Finding::wrong(
        check,
        format!(
            "{}: sessions with it use that and no account store, so a move has no effect",
            found.join(", ")
        ),
        "unset it where sessions should be moved between accounts",
    )
}

fn shard(looked: &Looked) -> Finding {
    let check = "shard variable";
    let key = env::CLAUDE_SECURESTORAGE_CONFIG_DIR;
    let mut user = None;
    for (level, value) in looked.levels.values() {
        let Some(set) = Levels::env(value, key).and_then(Value::as_str) else {
            continue;
        };
        if level.name != "user" {
            return Finding::wrong(
                check,
                format!(
                    "{} ({}) sets {key}, which outranks the user's settings",
                    level.path.display(),
                    level.name
                ),
                "take it out there; `ccswitch adopt` sets it in the user's settings",
            );
        }
        user = Some(set.to_owned());
    }
    match user {
        Some(set) if !Path::new(&set).starts_with(&looked.places.root) => Finding::wrong(
            check,
            format!(
                "the user's settings set {key} to {set}, which is not in {}",
                looked.places.root.display()
            ),
            "take it out and run `ccswitch adopt`, or name the right --root",
        ),
        Some(set) if !Path::new(&set).exists() => Finding::wrong(
            check,
            format!("{key} names {set}, which leads nowhere: sessions find no login"),
            "`ccswitch adopt`, or take the entry out",
        ),
        Some(set) => unless_unread(
            looked,
            check,
            format!("{set} in the user's settings alone; {}", looked_at(looked)),
        ),
        None if env::is_set(key) => Finding::wrong(
            check,
            format!(
                "the environment sets {key}, the user's settings do not: sessions started here and elsewhere use different logins"
            ),
            "unset it and run `ccswitch adopt`",
        ),
        None => unless_unread(
            looked,
            check,
            format!(
                "not set: no account is adopted, so walls are waited out and not moved away from; {}",
                looked_at(looked)
            ),
        ),
    }
}

fn unless_unread(looked: &Looked, check: &'static str, says: String) -> Finding {
    let unread = looked.levels.unread();
    if unread.is_empty() {
        return Finding::ok(check, says);
    }
    Finding::not_looked(
        check,
        format!("unreadable: {}", unread.join(", ")),
        "make the settings readable first",
    )
}
