//! A loopback stand-in for the Messages API, driven from inside the test.
//!
//! The real client talks to it through `ANTHROPIC_BASE_URL`. Each account gives
//! its own script of answers; every request is kept with its conversation, so a
//! test can say which account was asked, how often, and with what.

mod clock;
mod conversation;
mod events;
mod failure;
pub mod http;
mod log;
mod serve;
pub mod server;
mod step;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use clock::{epoch_s, in_seconds};
pub use conversation::{Block, Conversation, Message};
pub use failure::{Failure, Window, quota_headers};
pub use log::{Kind, Request};
pub use step::{Script, Step};

use serve::{Match, Shared};
use server::Server;

/// The running mock. Dropping it ends every connection.
#[derive(Debug)]
pub struct MockApi {
    shared: Arc<Shared>,
    server: Server,
}

impl MockApi {
    /// Starts on a free port. Without a script every main request is answered
    /// with the text "mock answer", and every side request with "ok".
    pub fn start() -> MockApi {
        let shared = Arc::new(Shared::default());
        let server = Server::start({
            let shared = Arc::clone(&shared);
            move |stream, closing| shared.serve(&stream, &closing)
        });
        MockApi { shared, server }
    }

    /// What `ANTHROPIC_BASE_URL` must be.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port())
    }

    /// From now on the account answers main requests so.
    pub fn account(&self, name: &str, steps: impl IntoIterator<Item = Step>, last: Step) {
        let matching = Match {
            account: Some(name.to_owned()),
            ..Match::default()
        };
        self.add(matching, Script::new(steps, last));
    }

    /// From now on a main request of any account is answered so.
    pub fn anyone(&self, steps: impl IntoIterator<Item = Step>, last: Step) {
        self.add(Match::default(), Script::new(steps, last));
    }

    /// From now on agents whose first prompt contains `part` get these answers:
    /// a sub-agent's requests carry the prompt that its parent gave it.
    pub fn prompt(&self, part: &str, steps: impl IntoIterator<Item = Step>, last: Step) {
        let matching = Match {
            prompt: Some(part.to_owned()),
            ..Match::default()
        };
        self.add(matching, Script::new(steps, last));
    }

    /// From now on side requests of an account are answered so.
    pub fn side(&self, account: &str, step: Step) {
        let matching = Match {
            account: Some(account.to_owned()),
            side: true,
            ..Match::default()
        };
        self.add(matching, Script::always(step));
    }

    /// The newest script that fits a request answers it.
    fn add(&self, matching: Match, script: Script) {
        let mut scripts = self.shared.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.insert(0, (matching, script));
    }

    /// Everything seen so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.all()
    }

    /// The main requests seen so far.
    pub fn main_requests(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.kind == Kind::Main);
        requests
    }

    /// Waits until the log holds what `done` asks for.
    ///
    /// # Panics
    /// With the log, when it does not come to that in time.
    pub fn wait_until(&self, what: &str, patience: Duration, done: impl Fn(&[Request]) -> bool) {
        assert!(
            self.shared.log.wait(patience, done),
            "not within {patience:?}: {what}; requests so far:\n{}",
            self.describe()
        );
    }

    /// Waits for so many main requests and returns them.
    ///
    /// # Panics
    /// With the log, when they do not come in time.
    pub fn wait_main(&self, count: usize, patience: Duration) -> Vec<Request> {
        self.wait_until(&format!("{count} main requests"), patience, |requests| {
            let main = requests.iter().filter(|request| request.kind == Kind::Main);
            main.count() >= count
        });
        self.main_requests()
    }

    /// One line a request, for the message of a failed test.
    pub fn describe(&self) -> String {
        let lines = self.requests().into_iter().map(|request| {
            format!(
                "{} {:?} account={} messages={} status={} first={:?}",
                epoch_s(request.at),
                request.kind,
                request.account,
                request.n_messages,
                request.status,
                request
                    .conversation
                    .first_prompt()
                    .chars()
                    .take(60)
                    .collect::<String>()
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
