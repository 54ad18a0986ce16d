//! Puts our entries into a settings.json and takes them out again.
//!
//! Every uninstaller of a comparable tool rewrote the user's file in its own
//! format. Here an edit is a handful of insertions at known places; no byte
//! that is not ours is touched. [`put`] returns, beside the new bytes, the few
//! facts that the new bytes cannot tell ([`Before`]: which containers were
//! there but empty, and how they were spaced), and [`take`] with those facts
//! is the exact inverse, also after the user has edited other places.
//!
//! The entries that are ours are recognised by what they are: a command hook
//! whose program is named like one of our hooks and whose arguments begin with
//! `--root`; an `env` entry whose key and value are the recorded ones. So an
//! older version's entries, from another prefix, are found too.

mod merge;
mod printer;
mod taking;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use merge::Merge;
use printer::{Layout, Printer};
use taking::Taking;

use super::json_span::{Fault, Kind, Member, Node, parse};

/// The file names of our hook executables.
pub const HOOKS: [&str; 4] = ["session-lease", "drive-gate", "walled-heal", "wedge-heal"];

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not UTF-8: the client would read other keys than it holds.
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// Not JSON: the client itself ignores such a file as a whole.
    #[error("not JSON: {0} (the client ignores such a file as a whole and runs no hook)")]
    NotJson(#[from] Fault),
    /// Two values under one key: only one of them is in force.
    #[error("the key {0:?} stands twice")]
    Duplicate(String),
    /// Something else stands where an object or an array must be.
    #[error("{path} must be {wanted}")]
    WrongType {
        /// Which value, as `/hooks/Stop`; `/` is the whole file.
        path: String,
        /// What it must be, with its article.
        wanted: &'static str,
    },
    /// The user has set this key to something else.
    #[error("{path} is already set to another value")]
    Occupied {
        /// Which value, as `/env/NAME`.
        path: String,
    },
}

/// What the file was like where the edited bytes cannot tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Containers that were there and empty: path to the white space inside.
    #[serde(default)]
    pub empty: BTreeMap<String, String>,
    /// The whole text, where the file held no JSON value (empty or blank).
    #[serde(default)]
    pub blank: Option<String>,
}

/// The outcome of [`put`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new content.
    pub bytes: Vec<u8>,
    /// To be kept for [`take`].
    pub before: Before,
}

/// Which of our entries [`take`] removes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ours<'a> {
    /// The hooks, recognised by their shape.
    pub hooks: bool,
    /// These `env` entries, by key and value.
    pub env: &'a [(String, String)],
}

/// A replacement of the bytes from `start` to `end`.
struct Splice {
    start: usize,
    end: usize,
    text: String,
}

/// The registration and the `env` entries as one JSON text to [`put`]:
/// `hooks` is the text of a `{"hooks": {...}}` object (or `None`).
pub fn additions(hooks: Option<&str>, env: &[(String, String)]) -> Result<String, Refusal> {
    let hooks_text = hooks.unwrap_or("{}");
    let root = parse(hooks_text)?;
    let mut parts = Vec::new();
    if let Some(node) = root.get("hooks") {
        parts.push(format!(
            "\"hooks\": {}",
            hooks_text.get(node.start..node.end).unwrap_or_default()
        ));
    }
    if !env.is_empty() {
        let entries: Vec<String> = env
            .iter()
            .map(|(key, value)| format!("{}: {}", quoted(key), quoted(value)))
            .collect();
        parts.push(format!("\"env\": {{{}}}", entries.join(", ")));
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}

/// Adds the members of `additions` (a JSON object as text): objects are
/// merged, arrays get the new elements at their end, an equal value is left as
/// it is, a different one is refused. Nothing of `bytes` is lost but the white
/// space inside empty containers, which [`Before`] keeps.
pub fn put(bytes: &[u8], additions: &str) -> Result<Edited, Refusal> {
    let text = utf8(bytes)?;
    let wanted = parse(additions)?;
    let mut before = Before::default();
    if is_blank(text) {
        let mut out = String::new();
        Printer {
            source: additions,
            layout: &Layout::lines(text, "  "),
        }
        .print(&wanted, "", &mut out);
        out.push('\n');
        before.blank = Some(text.to_owned());
        return Ok(Edited {
            bytes: out.into_bytes(),
            before,
        });
    }
    let root = parse(text)?;
    let mut merge = Merge {
        text,
        additions,
        unit: indent_unit(text, &root),
        one_line: !is_empty(&root) && !slice(text, root.start, root.end).contains('\n'),
        before,
        splices: Vec::new(),
    };
    merge.object(&root, &wanted, "")?;
    Ok(Edited {
        bytes: apply(text, merge.splices).into_bytes(),
        before: merge.before,
    })
}

/// Removes what is ours and gives the rest back byte for byte. Containers left
/// empty by it go too, unless `before` says that they were there. `None`
/// stands for a file that held nothing but ours and was not there before (or
/// was blank: then [`Before::blank`] is its content).
pub fn take(bytes: &[u8], ours: Ours<'_>, before: &Before) -> Result<Option<Vec<u8>>, Refusal> {
    let text = utf8(bytes)?;
    if is_blank(text) {
        return Ok(Some(bytes.to_vec()));
    }
    let root = parse(text)?;
    let members = object(&root, "/")?;
    no_duplicates(members)?;
    let mut taking = Taking {
        before,
        splices: Vec::new(),
    };
    let mut gone = BTreeSet::new();
    for member in members {
        let path = format!("/{}", member.key);
        let removed = match member.key.as_str() {
            "hooks" if ours.hooks => taking.hooks(&member.value, &path)?,
            "env" if !ours.env.is_empty() => taking.env(&member.value, &path, ours.env)?,
            _ => false,
        };
        if removed {
            gone.insert(member.start);
        }
    }
    let items: Vec<(usize, usize)> = spans_of_members(members);
    let root_emptied = !items.is_empty() && gone.len() == items.len();
    if root_emptied && before.blank.is_some() {
        return Ok(None);
    }
    taking.drop_items(&root, &items, &gone, "");
    Ok(Some(apply(text, taking.splices).into_bytes()))
}

/// The command hooks of ours in the file, as (event, command, root).
pub fn our_hooks(bytes: &[u8]) -> Result<Vec<(String, String, String)>, Refusal> {
    let mut found = Vec::new();
    for_each_handler(bytes, |event, handler| {
        if let Some((command, root)) = our_handler(handler) {
            found.push((event.to_owned(), command.to_owned(), root.to_owned()));
        }
    })?;
    Ok(found)
}

/// Whether the file holds exactly the hooks of `hooks` (the text of a
/// `{"hooks": {...}}` object) and no other ones of ours: then an install has
/// nothing to do.
pub fn holds(bytes: &[u8], hooks: &str) -> Result<bool, Refusal> {
    let collect = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let mut all = Vec::new();
        for_each_handler(bytes, |event, handler| {
            if our_handler(handler).is_some() {
                all.push((
                    event.to_owned(),
                    canonical(slice(&text, handler.start, handler.end)),
                ));
            }
        })?;
        all.sort();
        Ok::<_, Refusal>(all)
    };
    Ok(collect(bytes)? == collect(hooks.as_bytes())?)
}

/// Whether `text` says what `original` said, but for layout, order and the empty
/// objects that the client leaves after a plugin is taken out again: the
/// client's own `plugin` verbs write the whole file anew (measured, 2.1.332).
/// A missing file is `None` and says nothing.
pub fn is_rewrite_of(text: Option<&[u8]>, original: Option<&[u8]>) -> bool {
    let meaning = |bytes: Option<&[u8]>| {
        let text = utf8(bytes.unwrap_or_default()).ok()?;
        let plain = text.trim_start_matches('\u{feff}');
        if is_blank(plain) {
            return Some(serde_json::Map::new());
        }
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(plain).ok()
    };
    let (Some(mut text), Some(original)) = (meaning(text), meaning(original)) else {
        return false;
    };
    for key in ["enabledPlugins", "extraKnownMarketplaces"] {
        let is_left_over = text
            .get(key)
            .and_then(serde_json::Value::as_object)
            .is_some_and(serde_json::Map::is_empty);
        if is_left_over && !original.contains_key(key) {
            text.remove(key);
        }
    }
    text == original
}

/// The value of an `env` entry, if the file has one that is a string.
pub fn env_value(bytes: &[u8], key: &str) -> Result<Option<String>, Refusal> {
    let text = utf8(bytes)?;
    if is_blank(text) {
        return Ok(None);
    }
    let root = parse(text)?;
    Ok(root
        .get("env")
        .and_then(|env| env.get(key))
        .and_then(Node::text)
        .map(str::to_owned))
}

/// A JSON string literal.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn for_each_handler(bytes: &[u8], mut each: impl FnMut(&str, &Node)) -> Result<(), Refusal> {
    let text = utf8(bytes)?;
    if is_blank(text) {
        return Ok(());
    }
    let root = parse(text)?;
    object(&root, "/")?;
    let Some(hooks) = root.get("hooks") else {
        return Ok(());
    };
    for event in object(hooks, "/hooks")? {
        for group in event.value.elements().unwrap_or_default() {
            for handler in group.get("hooks").and_then(Node::elements).unwrap_or_default() {
                each(&event.key, handler);
            }
        }
    }
    Ok(())
}

/// Command and state root of a handler that is ours.
fn our_handler(handler: &Node) -> Option<(&str, &str)> {
    let command = handler.get("command")?.text()?;
    let name = command.rsplit('/').next()?;
    let args = handler.get("args")?.elements()?;
    let root = match args {
        [flag, root, ..] if flag.text() == Some("--root") => root.text()?,
        _ => return None,
    };
    HOOKS.contains(&name).then_some((command, root))
}

fn canonical(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text)
        .map_or_else(|_| text.to_owned(), |value| value.to_string())
}

fn utf8(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| Refusal::NotUtf8(error.valid_up_to()))
}

fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

fn is_empty(node: &Node) -> bool {
    node.members().is_some_and(<[Member]>::is_empty) || node.elements().is_some_and(<[Node]>::is_empty)
}

fn or_root(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn object<'n>(node: &'n Node, path: &str) -> Result<&'n [Member], Refusal> {
    node.members().ok_or_else(|| Refusal::WrongType {
        path: path.to_owned(),
        wanted: "an object",
    })
}

fn array<'n>(node: &'n Node, path: &str) -> Result<&'n [Node], Refusal> {
    node.elements().ok_or_else(|| Refusal::WrongType {
        path: path.to_owned(),
        wanted: "an array",
    })
}

fn no_duplicates(members: &[Member]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for member in members {
        if !seen.insert(member.key.as_str()) {
            return Err(Refusal::Duplicate(member.key.clone()));
        }
    }
    Ok(())
}

fn spans_of_members(members: &[Member]) -> Vec<(usize, usize)> {
    members
        .iter()
        .map(|member| (member.start, member.value.end))
        .collect()
}

fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

/// White space at the start of the line on which `at` stands.
fn indent_at(text: &str, at: usize) -> &str {
    let line = slice(text, line_start(text, at), at);
    let width = line.len() - line.trim_start_matches([' ', '\t']).len();
    slice(line, 0, width)
}

fn is_line_start(text: &str, at: usize) -> bool {
    let start = line_start(text, at);
    start > 0 && slice(text, start, at).trim_matches([' ', '\t']).is_empty()
}

fn line_start(text: &str, at: usize) -> usize {
    slice(text, 0, at).rfind('\n').map_or(0, |newline| newline + 1)
}

/// The indentation of the first member of the file, two spaces if it has none.
fn indent_unit(text: &str, root: &Node) -> String {
    root.members()
        .and_then(<[Member]>::first)
        .filter(|first| is_line_start(text, first.start))
        .map(|first| indent_at(text, first.start))
        .filter(|unit| !unit.is_empty())
        .unwrap_or("  ")
        .to_owned()
}

fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.start);
    let mut out = String::with_capacity(text.len() + 4096);
    let mut at = 0;
    for splice in splices {
        out.push_str(slice(text, at, splice.start));
        out.push_str(&splice.text);
        at = splice.end;
    }
    out.push_str(slice(text, at, text.len()));
    out
}

#[cfg(test)]
mod tests;
