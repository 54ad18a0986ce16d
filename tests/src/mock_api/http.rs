//! Just enough HTTP/1.1 for a loopback server: whole requests in, whole or
//! chunked answers out. Generic over the stream, because the token endpoint
//! speaks it through TLS.

use std::io::{self, BufRead, Read, Write};

/// The largest request body that is read, in bytes. A whole conversation with
/// the client's own prompt is well under one megabyte.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One request, read to the end of its body.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, `HEAD`, `CONNECT`, ...
    pub method: String,
    /// The target as sent, query included.
    pub target: String,
    /// Names in lower case, values trimmed, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The body, empty when there is none.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The first value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name)?;
        Some(&found.1)
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The bearer token or the API key, whichever the request carries.
    pub fn credential(&self) -> &str {
        let bearer = self
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        bearer.or_else(|| self.header("x-api-key")).unwrap_or("")
    }
}

/// Reads the next request of a connection; `None` when the peer closed it.
pub fn read_request(stream: &mut impl BufRead) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::Error::other(format!("not a request line: {line:?}")));
    };
    let (method, target) = (method.to_owned(), target.to_owned());

    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if stream.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':') {
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }

    let mut request = HttpRequest {
        method,
        target,
        headers,
        body: Vec::new(),
    };
    let length: u64 = match request.header("content-length") {
        Some(text) => text.parse().map_err(io::Error::other)?,
        None => 0,
    };
    if length > BODY_BYTES_MAX {
        return Err(io::Error::other(format!("a body of {length} bytes")));
    }
    stream.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}

/// Writes a whole JSON answer and keeps the connection usable.
pub fn write_json(
    stream: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    body: &serde_json::Value,
) -> io::Result<()> {
    let body = body.to_string();
    write_head(stream, status, "application/json", headers)?;
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

/// Writes an empty 200, as a `HEAD` wants it.
pub fn write_empty(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    stream.flush()
}

/// Begins a chunked event stream.
pub fn begin_events(stream: &mut impl Write, headers: &[(String, String)]) -> io::Result<()> {
    write_head(stream, 200, "text/event-stream", headers)?;
    stream.write_all(b"transfer-encoding: chunked\r\n\r\n")?;
    stream.flush()
}

/// Writes one server-sent event as one chunk.
pub fn write_event(stream: &mut impl Write, name: &str, data: &serde_json::Value) -> io::Result<()> {
    let event = format!("event: {name}\ndata: {data}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    stream.write_all(chunk.as_bytes())?;
    stream.flush()
}

/// Ends a chunked event stream.
pub fn end_events(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

/// All of the head but the length and the empty line.
fn write_head(
    stream: &mut impl Write,
    status: u16,
    content_type: &str,
    headers: &[(String, String)],
) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} Mock\r\ncontent-type: {content_type}\r\n"
    )?;
    stream.write_all(b"request-id: req_mock0001\r\n")?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    Ok(())
}
