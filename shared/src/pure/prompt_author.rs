//! Who wrote a prompt: a person, or a program that put text into the session.
//!
//! The client's own `origin` fields are no proof, so the text's stamp decides
//! (rule M5). Every injector of ours stamps; the client's own continuation after
//! a limit has no stamp and is not a person either.

/// Text that the client itself sends after a limit has reset (measured, 2.1.332).
pub const NATIVE_CONTINUATION: &str = "Your claude.ai usage limit has reset.";

/// Who wrote a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A person typed it (or a script on a person's behalf).
    Person,
    /// A program: ours, the client's task notifications, another injector.
    Program,
    /// The client's own continuation after a usage limit.
    Native,
}

/// The author, by the stamp the text starts with.
pub fn author(prompt: &str) -> Author {
    let text = prompt.trim_start();
    if text.starts_with(NATIVE_CONTINUATION) {
        return Author::Native;
    }
    let stamped = [
        "[fleet-medic]",
        "[webhook]",
        "<task-notification>",
        "ccswitch: ",
        "rungs: ",
    ]
    .iter()
    .any(|stamp| text.starts_with(stamp));
    if stamped || is_message_stamp(text) {
        Author::Program
    } else {
        Author::Person
    }
}

/// `[msg from NAME · sid8]`, with any name.
fn is_message_stamp(text: &str) -> bool {
    let Some((head, _)) = text
        .strip_prefix("[msg from ")
        .and_then(|rest| rest.split_once(']'))
    else {
        return false;
    };
    head.rsplit_once(" · ")
        .is_some_and(|(_, sid)| sid.len() == 8 && !head.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_decides() {
        let cases = [
            ("fix the tests", Author::Person),
            ("what does <task-notification> mean?", Author::Person),
            ("[msg from nobody", Author::Person),
            (
                "<task-notification>\n<summary>Stop hook feedback</summary>",
                Author::Program,
            ),
            ("[msg from lead · 42c4d508] go on", Author::Program),
            ("[fleet-medic] go on", Author::Program),
            ("ccswitch: moved to b", Author::Program),
            (
                "Your claude.ai usage limit has reset. Continue the task",
                Author::Native,
            ),
            ("", Author::Person),
        ];
        for (prompt, expected) in cases {
            assert_eq!(author(prompt), expected, "{prompt:?}");
        }
    }
}
