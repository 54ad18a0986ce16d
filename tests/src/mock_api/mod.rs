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
pub mod server;
mod step;

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

pub use clock::{epoch_s, in_seconds};
pub use conversation::{Block, Conversation, Message};
pub use failure::{Failure, Window, quota_headers};
pub use log::{Kind, Request};
pub use step::{Script, Step};

use crate::login::account_of;
use http::HttpRequest;
use server::{Closing, Server};
use step::Answer;

/// Which requests a script answers. All that is set must fit.
#[derive(Debug, Clone, Default)]
struct Match {
    account: Option<String>,
    prompt: Option<String>,
    side: bool,
}

impl Match {
    fn fits(&self, kind: Kind, account: &str, conversation: &Conversation) -> bool {
        let account_fits = self.account.as_deref().is_none_or(|name| name == account);
        let prompt = self.prompt.as_deref();
        let prompt_fits = prompt.is_none_or(|part| conversation.first_prompt().contains(part));
        self.side == (kind == Kind::Side) && account_fits && prompt_fits
    }
}

#[derive(Debug, Default)]
struct Shared {
    scripts: Mutex<Vec<(Match, Script)>>,
    log: log::Log,
}

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
        let mut scripts = self
            .shared
            .scripts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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

impl Shared {
    fn serve(&self, stream: &TcpStream, closing: &Closing) -> io::Result<()> {
        let (mut reader, mut writer) = server::halves(stream)?;
        while let Some(request) = http::read_request(&mut reader)? {
            match (request.method.as_str(), request.path()) {
                ("POST", "/v1/messages") => {
                    self.messages(&request, stream, &mut writer, closing)?;
                }
                (method, path) => {
                    let known = method == "HEAD" || path == "/v1/messages/count_tokens";
                    let status = if known { 200 } else { 404 };
                    self.log
                        .push(entry(&request, Kind::Other, &Value::Null, status));
                    match method {
                        "HEAD" => http::write_empty(&mut writer)?,
                        _ if known => {
                            http::write_json(
                                &mut writer,
                                200,
                                &[],
                                &json!({ "input_tokens": 1234 }),
                            )?;
                        }
                        _ => http::write_json(
                            &mut writer,
                            404,
                            &[],
                            &error_body("not_found_error", "mock: no such path"),
                        )?,
                    }
                }
            }
        }
        Ok(())
    }

    fn messages(
        &self,
        request: &HttpRequest,
        stream: &TcpStream,
        writer: &mut impl Write,
        closing: &Closing,
    ) -> io::Result<()> {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let has_tools = body
            .get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| !tools.is_empty());
        let kind = if has_tools { Kind::Main } else { Kind::Side };
        let mut entry = entry(request, kind, &body, 0);
        let step = self.step_for(&entry);
        entry.status = match &step.answer {
            Answer::Message { .. } => 200,
            Answer::Failure(failure) => failure.status,
            _ => 0,
        };
        self.log.push(entry);
        if closing.sleep(step.delay) {
            return Ok(());
        }

        let model = body.get("model").and_then(Value::as_str).unwrap_or("mock");
        let streaming = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        let (limit, lasting) = match &step.answer {
            Answer::Failure(failure) => {
                let body = error_body(failure.kind, &failure.message);
                let headers = [failure.headers.as_slice(), &step.headers].concat();
                return http::write_json(writer, failure.status, &headers, &body);
            }
            Answer::Message { .. } if !streaming => {
                let body = events::message(&step.answer, model);
                return http::write_json(writer, 200, &step.headers, &body);
            }
            Answer::Message { .. } => (usize::MAX, Duration::ZERO),
            // Without a stream there is no middle to break off in: no answer at all.
            Answer::Reset { .. } | Answer::Cut { .. } if !streaming => {
                return server::reset(stream);
            }
            Answer::Hang { lasting, .. } if !streaming => {
                closing.sleep(*lasting);
                return server::reset(stream);
            }
            Answer::Reset { after_events } | Answer::Cut { after_events } => {
                (*after_events, Duration::ZERO)
            }
            Answer::Hang {
                after_events,
                lasting,
            } => (*after_events, *lasting),
        };

        http::begin_events(writer, &step.headers)?;
        for (name, data) in events::events(&step.answer, model).iter().take(limit) {
            http::write_event(writer, name, data)?;
        }
        closing.sleep(lasting);
        if matches!(step.answer, Answer::Reset { .. }) {
            // The events must arrive before the reset throws away what is queued.
            closing.sleep(Duration::from_millis(200));
            return server::reset(stream);
        }
        http::end_events(writer)
    }

    fn step_for(&self, request: &Request) -> Step {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = scripts.iter_mut().find(|(matching, _)| {
            matching.fits(request.kind, &request.account, &request.conversation)
        });
        match (fitting, request.kind) {
            (Some((_, script)), _) => script.next(SystemTime::now()),
            (None, Kind::Main) => Step::text("mock answer"),
            (None, _) => Step::text("ok"),
        }
    }
}

fn entry(request: &HttpRequest, kind: Kind, body: &Value, status: u16) -> Request {
    let credential = request.credential().to_owned();
    let messages = body.get("messages").and_then(Value::as_array);
    Request {
        at: SystemTime::now(),
        kind,
        line: format!("{} {}", request.method, request.target),
        account: account_of(&credential).unwrap_or_default().to_owned(),
        credential,
        model: body
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned(),
        n_messages: messages.map_or(0, Vec::len),
        conversation: Conversation::of(body),
        session: request
            .header("x-claude-code-session-id")
            .unwrap_or("")
            .to_owned(),
        retry: request
            .header("x-stainless-retry-count")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
        status,
    }
}

fn error_body(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message },
        "request_id": "req_mock0001" })
}
