//! What the mock does with a request: which script answers it, and how the
//! answer goes over the wire.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::events;
use super::http::{self, HttpRequest};
use super::log::{Kind, Log, Request};
use super::server::{self, Closing};
use super::step::{Answer, Script, Step};
use crate::login::account_of;

/// Which requests a script answers. All that is set must fit.
#[derive(Debug, Clone, Default)]
pub(super) struct Match {
    pub(super) account: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) side: bool,
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
pub(super) struct Shared {
    pub(super) scripts: Mutex<Vec<(Match, Script)>>,
    pub(super) log: Log,
}

impl Shared {
    /// Answers the requests of one connection until the peer ends it.
    pub(super) fn serve(&self, stream: &TcpStream, closing: &Closing) -> io::Result<()> {
        let (mut reader, mut writer) = server::halves(stream)?;
        while let Some(request) = http::read_request(&mut reader)? {
            match (request.method.as_str(), request.path()) {
                ("POST", "/v1/messages") => {
                    self.messages(&request, stream, &mut writer, closing)?;
                }
                (method, path) => {
                    let known = method == "HEAD" || path == "/v1/messages/count_tokens";
                    let status = if known { 200 } else { 404 };
                    self.log.push(entry(&request, Kind::Other, &Value::Null, status));
                    match method {
                        "HEAD" => http::write_empty(&mut writer)?,
                        _ if known => {
                            http::write_json(&mut writer, 200, &[], &json!({ "input_tokens": 1234 }))?;
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
            Answer::Reset { after_events } | Answer::Cut { after_events } => (*after_events, Duration::ZERO),
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
        let fitting = scripts
            .iter_mut()
            .find(|(matching, _)| matching.fits(request.kind, &request.account, &request.conversation));
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
        model: body.get("model").and_then(Value::as_str).unwrap_or("").to_owned(),
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
