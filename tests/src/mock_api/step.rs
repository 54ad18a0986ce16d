//! One answer of the mock API, and the script of answers that an account gives.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::failure::{Failure, Window};

/// A tool call that the model makes.
#[derive(Debug, Clone)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) input: Value,
}

/// What goes over the wire.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Message {
        text: Option<String>,
        tools: Vec<ToolCall>,
    },
    Failure(Failure),
    /// Some events, then the connection is reset.
    Reset {
        after_events: usize,
    },
    /// Some events, then a clean end of the stream without `message_stop`.
    Cut {
        after_events: usize,
    },
    /// Some events, then silence.
    Hang {
        after_events: usize,
        lasting: Duration,
    },
}

/// How often a step is served before the next one is reached.
#[derive(Debug, Clone)]
enum Repeat {
    Times(u32),
    Until(SystemTime),
}

/// One answer, with its delay, headers and the number of times it is given.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) answer: Answer,
    pub(super) delay: Duration,
    pub(super) headers: Vec<(String, String)>,
    repeat: Repeat,
}

impl Step {
    fn of(answer: Answer) -> Step {
        Step {
            answer,
            delay: Duration::ZERO,
            headers: Vec::new(),
            repeat: Repeat::Times(1),
        }
    }

    /// A text that ends the turn.
    pub fn text(text: &str) -> Step {
        Step::of(Answer::Message {
            text: Some(text.to_owned()),
            tools: Vec::new(),
        })
    }

    /// One tool call.
    pub fn tool(name: &str, input: Value) -> Step {
        Step::of(Answer::Message {
            text: None,
            tools: Vec::new(),
        })
        .and_tool(name, input)
    }

    /// One `Bash` call.
    pub fn bash(command: &str) -> Step {
        Step::tool(
            "Bash",
            serde_json::json!({ "command": command, "description": "A step of the scenario" }),
        )
    }

    /// A further tool call in the same answer.
    #[must_use]
    pub fn and_tool(mut self, name: &str, input: Value) -> Step {
        if let Answer::Message { tools, .. } = &mut self.answer {
            tools.push(ToolCall {
                name: name.to_owned(),
                input,
            });
        }
        self
    }

    /// An error answer.
    pub fn fail(failure: Failure) -> Step {
        Step::of(Answer::Failure(failure))
    }

    /// A usage limit that holds until its reset, for every request till then.
    pub fn wall(window: Window, resets_at: SystemTime) -> Step {
        Step::fail(Failure::wall(window, resets_at)).until(resets_at)
    }

    /// The connection is reset in the middle of an answer.
    pub fn reset() -> Step {
        Step::of(Answer::Reset { after_events: 3 })
    }

    /// The answer ends too early, without an error.
    pub fn cut() -> Step {
        Step::of(Answer::Cut { after_events: 3 })
    }

    /// The answer falls silent for so long, then the connection ends.
    pub fn hang(lasting: Duration) -> Step {
        Step::of(Answer::Hang {
            after_events: 3,
            lasting,
        })
    }

    /// Waits so long before the answer begins.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Step {
        self.delay = delay;
        self
    }

    /// Adds headers to the answer.
    #[must_use]
    pub fn headers(mut self, headers: Vec<(String, String)>) -> Step {
        self.headers.extend(headers);
        self
    }

    /// Gives the answer so many times before the next step.
    #[must_use]
    pub fn times(mut self, times: u32) -> Step {
        self.repeat = Repeat::Times(times);
        self
    }

    /// Gives the answer until this instant; afterwards the step is passed over.
    #[must_use]
    pub fn until(mut self, end: SystemTime) -> Step {
        self.repeat = Repeat::Until(end);
        self
    }
}

/// Steps in order, then one answer for ever.
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    last: Step,
    index: usize,
    served: u32,
}

impl Script {
    /// These steps, then `last` for every further request.
    pub fn new(steps: impl IntoIterator<Item = Step>, last: Step) -> Script {
        Script {
            steps: steps.into_iter().collect(),
            last,
            index: 0,
            served: 0,
        }
    }

    /// The same answer for ever.
    pub fn always(step: Step) -> Script {
        Script::new([], step)
    }

    /// The answer to a request that comes now.
    pub(super) fn next(&mut self, now: SystemTime) -> Step {
        while let Some(step) = self.steps.get(self.index) {
            let due = match step.repeat {
                Repeat::Times(times) => self.served < times,
                Repeat::Until(end) => now < end,
            };
            if due {
                self.served += 1;
                return step.clone();
            }
            self.index += 1;
            self.served = 0;
        }
        self.last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(step: &Step) -> String {
        match &step.answer {
            Answer::Message { text, .. } => text.clone().unwrap_or_default(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn steps_are_served_in_order_then_the_last_for_ever() {
        let mut script = Script::new([Step::text("one").times(2), Step::text("two")], Step::text("end"));
        let now = SystemTime::now();
        let served: Vec<String> = (0..5).map(|_| text_of(&script.next(now))).collect();
        assert_eq!(served, ["one", "one", "two", "end", "end"]);
    }

    #[test]
    fn a_wall_holds_until_its_reset() {
        let reset = SystemTime::now() + Duration::from_mins(1);
        let mut script = Script::new([Step::wall(Window::FiveHour, reset)], Step::text("free"));
        assert!(text_of(&script.next(reset - Duration::from_secs(1))).contains("429"));
        assert_eq!(text_of(&script.next(reset)), "free");
    }
}
