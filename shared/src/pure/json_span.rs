//! A strict JSON reader that remembers where everything stands.
//!
//! Editing somebody's settings without disturbing a byte needs positions, and
//! the reader must refuse exactly what the client refuses: with a comment or a
//! trailing comma in settings.json the client runs no hook at all (measured,
//! 2.1.332). A concrete-syntax-tree crate would accept those, and would still
//! leave it to us to find duplicate keys and to keep BOM and line ends, so the
//! 200 lines here are the smaller thing.

use thiserror::Error;

/// Deepest nesting read; beyond it the text is refused, not followed.
const MAX_DEPTH: usize = 256;

/// One JSON value with its place: `start` and `end` are byte offsets, the end
/// exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a [`Node`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Members in the order of the text, duplicates included.
    Object(Vec<Member>),
    /// Elements in order.
    Array(Vec<Node>),
    /// A string, decoded.
    Text(String),
    /// A number, `true`, `false` or `null`: the text itself says which.
    Scalar,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, decoded.
    pub key: String,
    /// Offset of the key's opening quote.
    pub start: usize,
    /// The value.
    pub value: Node,
}

/// Why a text is not JSON, and where: lines and columns count from 1, columns
/// in characters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The reason, in words.
    pub what: String,
}

impl Node {
    /// The members, if this is an object.
    pub fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The decoded text, if this is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key. Where a key stands twice the last one counts, as
    /// for the client.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let members = self.members()?;
        members
            .iter()
            .rev()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }
}

/// Reads a whole text that holds one JSON value; a byte order mark in front is
/// allowed, as the client allows it.
pub fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_space();
    let node = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.fault(reader.unexpected("after the end of the value")));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, what: String) -> Fault {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Fault {
            line: before.matches('\n').count() + 1,
            column: before
                .get(line_start..)
                .unwrap_or_default()
                .trim_start_matches('\u{feff}')
                .chars()
                .count()
                + 1,
            what,
        }
    }

    fn unexpected(&self, place: &str) -> String {
        let rest = self.rest();
        match rest.chars().next() {
            None => format!("the text ends {place}"),
            Some('/') if rest.starts_with("//") || rest.starts_with("/*") => {
                "a comment; JSON has none".to_owned()
            }
            Some('#') => "a comment; JSON has none".to_owned(),
            Some(c) => format!("unexpected {c:?} {place}"),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH}")));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node {
            start,
            end: self.at,
            kind,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Fault> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(members));
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault(self.expected_item(b'}', "where a key should be")));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.fault(self.unexpected("where ':' should be")));
            }
            self.at += 1;
            self.skip_space();
            let value = self.value(depth + 1)?;
            members.push(Member { key, start, value });
            if self.closes(b'}')? {
                return Ok(Kind::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Fault> {
        let mut elements = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::Array(elements));
        }
        loop {
            if self.peek() == Some(b']') {
                return Err(self.fault(self.expected_item(b']', "")));
            }
            elements.push(self.value(depth + 1)?);
            if self.closes(b']')? {
                return Ok(Kind::Array(elements));
            }
        }
    }

    fn expected_item(&self, close: u8, place: &str) -> String {
        if self.peek() == Some(close) {
            "a trailing comma; JSON has none".to_owned()
        } else {
            self.unexpected(place)
        }
    }

    /// After an item: true at the closing bracket, false after a comma.
    fn closes(&mut self, close: u8) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(false)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.fault(self.unexpected(&format!("where ',' or '{}' should be", char::from(close))))),
        }
    }

    /// Strings and numbers are cut out here and read by `serde_json`, which is
    /// as strict as the client's own reader about escapes and digits.
    fn string(&mut self) -> Result<String, Fault> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(0..=0x1f) | None => {
                    self.at = end.min(bytes.len());
                    return Err(self.fault("a string that does not end on its line".to_owned()));
                }
                Some(_) => end += 1,
            }
        }
        let raw = self.text.get(start..=end).unwrap_or_default();
        let decoded = serde_json::from_str::<String>(raw)
            .or_else(|_| serde_json::from_str::<String>(&without_lone_surrogates(raw)))
            .map_err(|_| self.fault("a string with a bad escape".to_owned()))?;
        self.at = end + 1;
        Ok(decoded)
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let length = self
            .rest()
            .bytes()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let raw = self.rest().get(..length).unwrap_or_default();
        // A number too large for a double is still JSON (the client reads it
        // as infinity), so only the shape is asked.
        if !is_number(raw) {
            return Err(self.fault(format!("{raw:?} is not a number")));
        }
        self.at += length;
        Ok(Kind::Scalar)
    }

    fn word(&mut self) -> Result<Kind, Fault> {
        for word in ["true", "false", "null"] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(Kind::Scalar);
            }
        }
        Err(self.fault(self.unexpected("where a value should be")))
    }
}

/// The client's reader takes `\ud800` alone, ours does not: only the decoded
/// form is touched, never the text.
fn without_lone_surrogates(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let is_surrogate = |text: &str, high: bool| {
            text.strip_prefix("\\u")
                .and_then(|hex| hex.get(..4))
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                .is_some_and(|unit| {
                    if high {
                        (0xd800..0xdc00).contains(&unit)
                    } else {
                        (0xdc00..0xe000).contains(&unit)
                    }
                })
        };
        let low_follows = escape.get(6..).is_some_and(|next| is_surrogate(next, false));
        let (taken, kept) = if is_surrogate(escape, true) && low_follows {
            (12, true)
        } else if is_surrogate(escape, true) || is_surrogate(escape, false) {
            (6, false)
        } else {
            (2, true)
        };
        let taken = taken.min(escape.len());
        let (head, tail) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        out.push_str(if kept { head } else { "\\ufffd" });
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn is_number(raw: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = raw.strip_prefix('-').unwrap_or(raw);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn refuses_what_the_client_refuses_and_says_where() {
        assert_eq!(
            fault("{\n  // mine\n}"),
            "line 2, column 3: a comment; JSON has none"
        );
        assert_eq!(
            fault("{\"a\": 1,\n}"),
            "line 2, column 1: a trailing comma; JSON has none"
        );
        assert_eq!(
            fault("[1, ]"),
            "line 1, column 5: a trailing comma; JSON has none"
        );
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "[1 2]",
            "{'a':1}",
            "nul",
            "01",
            "1.",
            "+1",
            "-",
            "\"a\nb\"",
            "\"\\x\"",
            "\"a",
            "{} {}",
            "{\"a\":NaN}",
            "\"\\",
            "[/*c*/]",
            "1e",
            "\"\\u12\"",
        ] {
            assert!(parse(text).is_err(), "{text:?} was accepted");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn keeps_places_and_decodes() {
        let text = "\u{feff} {\"a\\u0062\": [1, -2.5e+3, true], \"x\": \"\\ud83d\\ude00\"}\r\n";
        let node = parse(text).unwrap();
        assert_eq!(node.get("ab").unwrap().elements().unwrap().len(), 3);
        assert_eq!(node.get("x").unwrap().text(), Some("\u{1f600}"));
        assert_eq!(&text[node.start..=node.start], "{");
        assert_eq!(&text[node.end..], "\r\n");
        assert_eq!(
            parse("\"\\ud800x\\ud83d\\ude00\\\\ud800\"").unwrap().text(),
            Some("\u{fffd}x\u{1f600}\\ud800")
        );
    }
}
