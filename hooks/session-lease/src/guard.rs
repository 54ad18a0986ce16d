//! The client's own continuation after a usage limit.
//!
//! It stays armed after a session has gone on elsewhere, and then sends a second,
//! unwanted prompt 75 to over 104 s after the reset (measured, 2.1.332). It is
//! stopped only where the newest main line is a success: then somebody continued
//! already. Where nobody did, it is welcome.

use std::path::Path;

use shared::edge::transcript_file::{self, WINDOW_BYTES, WINDOW_BYTES_MAX};
use shared::hook::Call;
use shared::pure::transcript::Tail;

/// What the person sees in place of the second continuation.
pub(crate) const REASON: &str =
    "rungs: the session already went on after the limit, so the client's own continuation was stopped.";

/// Whether the session went on after the limit. Unknown is no: the prompt then
/// goes through.
pub(crate) fn went_on_already(call: &Call) -> bool {
    let Some(path) = call.payload.transcript_path.as_deref() else {
        return false;
    };
    for window in [WINDOW_BYTES, WINDOW_BYTES_MAX] {
        match transcript_file::read_tail(Path::new(path), window) {
            Ok((bytes, whole)) => {
                if let Some(success) = newest_answer_is_success(&Tail::from_bytes(&bytes, whole)) {
                    return success;
                }
                if whole {
                    break;
                }
            }
            Err(why) => {
                call.log(&format!("unknown whether the session went on: {why}"));
                return false;
            }
        }
    }
    call.log("unknown whether the session went on: the transcript's end shows no answer");
    false
}

/// Whether the newest line of the model is an answer and not a failure; `None`
/// where there is none.
fn newest_answer_is_success(tail: &Tail) -> Option<bool> {
    let newest = tail
        .lines
        .iter()
        .rev()
        .find(|line| line.is_main() && line.kind.as_deref() == Some("assistant"))?;
    Some(!newest.is_failure())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: &str = r#"{"type":"assistant","error":"rate_limit","isApiErrorMessage":true,"message":{"stop_reason":"stop_sequence","content":[{"type":"text","text":"You've hit your 5-hour limit"}]}}"#;
    const ANSWER: &str = r#"{"type":"assistant","message":{"stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}}"#;
    const HELPER: &str =
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"x"}]}}"#;

    #[test]
    fn only_a_success_after_the_wall_counts() {
        let cases: [(&[&str], Option<bool>); 5] = [
            (&[WALL, ANSWER], Some(true)),
            (&[ANSWER, WALL], Some(false)),
            (&[ANSWER, WALL, HELPER], Some(false)),
            (&[r#"{"type":"user","message":{"content":"go"}}"#], None),
            (&[], None),
        ];
        for (lines, expected) in cases {
            let text = lines.join("\n") + "\n";
            assert_eq!(
                newest_answer_is_success(&Tail::from_bytes(text.as_bytes(), true)),
                expected,
                "{lines:?}"
            );
        }
    }
}
