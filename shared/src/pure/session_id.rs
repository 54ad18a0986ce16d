//! Ids that become parts of paths: checked once, then carried as a type.
//!
//! A session id comes from outside (a payload, a command line). One with `/`,
//! `..` or a NUL would let a hook write outside its root, so nothing that has
//! not passed here is ever joined to a path.

use std::fmt;

/// Longest id that is accepted, in bytes. The client's are UUIDs of 36.
pub const ID_BYTES_MAX: usize = 64;

/// A client session's id (a UUID in every version seen).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// The id of one prompt of a session; an episode is named after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromptId(String);

fn is_safe(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

impl SessionId {
    /// The id, if it is safe as a path part: letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Option<Self> {
        is_safe(text).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first eight characters, as in `loop/<sid8>/PAUSED`.
    pub fn first8(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl PromptId {
    /// The id, if it is safe as a path part.
    pub fn parse(text: &str) -> Option<Self> {
        is_safe(text).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PromptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_become_paths() {
        assert!(SessionId::parse("42c4d508-4d22-47e5-b86c-6edb7aab8318").is_some());
        let long = "a".repeat(300);
        for bad in ["", "..", "a/b", "../x", "a\0b", "a b", "é", ".", long.as_str()] {
            assert!(SessionId::parse(bad).is_none(), "{bad:?}");
        }
    }
}
