//! The requests that the mock API has seen, in memory.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::conversation::Conversation;

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A turn of an agent: `/v1/messages` with tools. A sub-agent's too; its
    /// conversation begins with its own prompt.
    Main,
    /// `/v1/messages` without tools: titles, summaries, probes.
    Side,
    /// Anything else.
    Other,
}

/// One request, and how it was answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// When it was read to its end.
    pub at: SystemTime,
    /// Main, side or other.
    pub kind: Kind,
    /// Method and target.
    pub line: String,
    /// The token or key it carried.
    pub credential: String,
    /// The account whose made-up token that is, "" for any other credential.
    pub account: String,
    /// The model asked for.
    pub model: String,
    /// The number of messages.
    pub n_messages: usize,
    /// The conversation, for main and side requests.
    pub conversation: Conversation,
    /// The client's session id header.
    pub session: String,
    /// The client's own count of retries of this request.
    pub retry: u32,
    /// The status that was answered; 0 while or where there is no answer.
    pub status: u16,
}

/// The log, and a bell that rings at each new entry.
#[derive(Debug, Default)]
pub(super) struct Log {
    requests: Mutex<Vec<Request>>,
    bell: Condvar,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, request: Request) {
        self.lock().push(request);
        self.bell.notify_all();
    }

    pub(super) fn all(&self) -> Vec<Request> {
        self.lock().clone()
    }

    /// Waits until the log holds what `done` asks for; whether it came to that.
    pub(super) fn wait(&self, patience: Duration, done: impl Fn(&[Request]) -> bool) -> bool {
        let end = Instant::now() + patience;
        let mut requests = self.lock();
        while !done(&requests) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.bell.wait_timeout(requests, left);
            requests = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
