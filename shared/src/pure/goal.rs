//! A session's stated goal: `goals/<sid>.json`.
//!
//! A goal belongs to one full session id and to no other: public gates that
//! kept it by project or by name held the wrong sessions
//! (anthropics/claude-plugins-official#64 and its siblings). After `/clear` it
//! stays with the old id. The goal's tool writes it, the gate reads it; fields
//! that this version does not know survive a rewrite.

use serde::{Deserialize, Serialize};

use super::session_id::SessionId;

/// The format that this version writes, and the newest that it understands.
pub const FORMAT: u32 = 1;

/// Longest goal, in characters; the client's own `/goal` has the same bound.
pub const TEXT_CHARS_MAX: usize = 4000;

/// Where the goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// To be reached.
    Open,
    /// Set aside until somebody resumes it.
    Paused,
    /// Claimed as reached.
    Done,
}

impl Standing {
    /// The word in the file and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Done => "done",
        }
    }
}

/// Who changed a goal. A command run inside a session counts as the session's,
/// also when a person typed it there: it is no person's authorisation (rule B6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Run outside any session.
    Person,
    /// Run by a session.
    Session,
}

impl By {
    /// The word in the file and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Session => "session",
        }
    }
}

/// What a reader needs of a goal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Goal {
    /// [`FORMAT`].
    pub format: u32,
    /// The session that it belongs to.
    pub sid: String,
    /// The goal, in the words of who set it.
    pub text: String,
    /// Where it stands.
    pub state: Standing,
    /// Counts the changes, from 1. A change of it ends the gate's episode.
    #[serde(default)]
    pub revision: u64,
    /// When the text was set (ms since 1970).
    #[serde(default)]
    pub set_at: Option<i64>,
    /// Who set the text.
    #[serde(default)]
    pub set_by: Option<By>,
}

/// Why a goal file says nothing to this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Written by a later version.
    #[error("has format {0}, this version knows {FORMAT}")]
    Newer(u32),
    /// Not a goal.
    #[error("is not understood: {0}")]
    Corrupt(String),
    /// Copied or renamed from another session.
    #[error("names another session ({0})")]
    OtherSession(String),
}

#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// The file's name under the root.
pub fn name(sid: &SessionId) -> String {
    format!("goals/{sid}.json")
}

impl Goal {
    /// Reads the goal file of a session.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn read(bytes: &[u8], sid: &SessionId) -> Result<Self, Unreadable> {
        let corrupt = |why: serde_json::Error| Unreadable::Corrupt(why.to_string());
        // A later format may have changed every other field.
        let head: Head = serde_json::from_slice(bytes).map_err(corrupt)?;
        if head.format > FORMAT {
            return Err(Unreadable::Newer(head.format));
        }
        let goal: Self = serde_json::from_slice(bytes).map_err(corrupt)?;
        if goal.sid == sid.as_str() {
            Ok(goal)
        } else {
            Err(Unreadable::OtherSession(goal.sid.chars().take(64).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid() -> SessionId {
        SessionId::parse("42c4d508-4d22-47e5-b86c-6edb7aab8318").unwrap()
    }

    #[test]
    fn a_goal_is_read_and_fields_of_others_are_passed_over() {
        let text = format!(
            r#"{{"format":1,"sid":"{}","text":"ship it","state":"open","later":[1]}}"#,
            sid()
        );
        let goal = Goal::read(text.as_bytes(), &sid()).unwrap();
        assert_eq!((goal.text.as_str(), goal.state), ("ship it", Standing::Open));
        assert_eq!((goal.revision, goal.set_at, goal.set_by), (0, None, None));
    }

    #[test]
    fn what_is_no_goal_of_this_session_says_why() {
        let newer = br#"{"format":2,"state":{"word":"open"}}"#;
        assert_eq!(Goal::read(newer, &sid()), Err(Unreadable::Newer(2)));
        let other = br#"{"format":1,"sid":"other","text":"t","state":"open"}"#;
        assert_eq!(
            Goal::read(other, &sid()),
            Err(Unreadable::OtherSession("other".into()))
        );
        let sid_field = format!(r#""sid":"{}""#, sid());
        for bad in [
            String::new(),
            "[]".into(),
            "{}".into(),
            format!(r#"{{"format":1,{sid_field},"text":"t"}}"#),
            format!(r#"{{"format":1,{sid_field},"text":"t","state":"half"}}"#),
            format!(r#"{{"format":-1,{sid_field},"text":"t","state":"open"}}"#),
            format!(r#"{{"format":1,{sid_field},"text":"t","state":"open"}} x"#),
        ] {
            let read = Goal::read(bad.as_bytes(), &sid());
            assert!(matches!(read, Err(Unreadable::Corrupt(_))), "{bad}: {read:?}");
        }
    }
}
