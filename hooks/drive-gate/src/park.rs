//! What the session's last message says about waiting and progress (rule G6).
//!
//! A marker stands on a line of its own, as plain text:
//!
//! ```text
//! WAITING ON <id>
//! GOAL: <n> of <m>
//! ```
//!
//! Up to three spaces before it and any white space after it are allowed,
//! nothing else. A line in a fenced block, in a quotation, with four or more
//! spaces or a tab before it, or with anything around the marker (backticks,
//! bold, a list dash, more words) only mentions it.

use shared::pure::session_id::ID_BYTES_MAX;

/// The markers of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks<'a> {
    /// Every id that the session says it waits on, in order.
    pub(crate) waiting_on: Vec<&'a str>,
    /// The last `GOAL: n of m`.
    pub(crate) progress: Option<Progress>,
}

/// `GOAL: n of m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// n.
    pub(crate) reached: u32,
    /// m.
    pub(crate) of: u32,
}

impl Progress {
    /// Whether it says that all is reached; `0 of 0` says nothing.
    pub(crate) fn is_all(self) -> bool {
        self.of > 0 && self.reached == self.of
    }
}

impl<'a> Marks<'a> {
    /// Reads a message.
    pub(crate) fn read(message: &'a str) -> Self {
        let mut marks = Self::default();
        let mut fence: Option<Fence> = None;
        for line in message.lines() {
            let content = line.trim_start_matches(' ');
            if line.len() - content.len() > 3 {
                continue;
            }
            if let Some(open) = fence {
                if open.is_closed_by(content) {
                    fence = None;
                }
                continue;
            }
            fence = Fence::opened_by(content);
            let content = content.trim_end();
            if let Some(id) = content.strip_prefix("WAITING ON ").filter(|id| is_id(id)) {
                marks.waiting_on.push(id);
            } else if let Some(progress) = content.strip_prefix("GOAL: ").and_then(progress) {
                marks.progress = Some(progress);
            }
        }
        marks
    }
}

/// A fenced block, as Markdown has it: three or more backticks or tildes, closed
/// by at least as many of the same.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        // An info string with backticks would be inline code on one line.
        let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let rest = line.trim_start_matches(self.mark);
        line.len() - rest.len() >= self.length && rest.trim().is_empty()
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn progress(text: &str) -> Option<Progress> {
    let (reached, of) = text.split_once(" of ")?;
    Some(Progress {
        reached: count(reached)?,
        of: count(of)?,
    })
}

/// Digits only: `u32`'s own parser would also take a plus sign.
fn count(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_stands_on_a_line_of_its_own() {
        for text in [
            "WAITING ON b-1",
            "done so far\n\nWAITING ON b-1\n",
            "   WAITING ON b-1  \r\nthanks",
            "```\nx\n```\nWAITING ON b-1",
            "~~~ sh\n```\n~~~~\nWAITING ON b-1",
            "``` a`b\nWAITING ON b-1",
        ] {
            assert_eq!(Marks::read(text).waiting_on, ["b-1"], "{text:?}");
        }
    }

    #[test]
    fn a_mention_is_no_marker() {
        for text in [
            "",
            "I am WAITING ON b-1",
            "WAITING ON b-1 and c-2",
            "WAITING ON",
            "WAITING ON ",
            "WAITING ON  b-1",
            "waiting on b-1",
            "WAITING ON b/1",
            "WAITING ON <id>",
            "> WAITING ON b-1",
            "- WAITING ON b-1",
            "`WAITING ON b-1`",
            "**WAITING ON b-1**",
            "    WAITING ON b-1",
            "\tWAITING ON b-1",
            "```\nWAITING ON b-1\n```",
            "```text\nWAITING ON b-1",
            "````\n```\nWAITING ON b-1\n````",
            "~~~\n```\nWAITING ON b-1\n~~~",
            "GOAL: 3 / 5",
            "GOAL: +3 of 5",
            "GOAL: 3 of 5 done",
            "GOAL:3 of 5",
            "GOAL: 3 of 99999999999",
            "GOAL: of 5",
        ] {
            assert_eq!(Marks::read(text), Marks::default(), "{text:?}");
        }
        assert!(
            Marks::read(&format!("WAITING ON {}", "a".repeat(65)))
                .waiting_on
                .is_empty()
        );
    }

    #[test]
    fn every_wait_and_the_last_progress_count() {
        let marks = Marks::read("GOAL: 5 of 5\nWAITING ON a\nGOAL: 2 of 5\nWAITING ON b");
        assert_eq!(marks.waiting_on, ["a", "b"]);
        assert_eq!(marks.progress, Some(Progress { reached: 2, of: 5 }));
        let all = |reached, of| Progress { reached, of }.is_all();
        assert_eq!(
            [all(5, 5), all(0, 0), all(0, 5), all(4, 5), all(6, 5)],
            [true, false, false, false, false]
        );
    }
}
