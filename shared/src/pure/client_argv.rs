//! The client's command line, taken apart so that the same session can be
//! started again with the same options.
//!
//! Kept is everything but what chooses the session or was the first prompt. The
//! table of options is that of the client's own `--help`, and of the options it
//! hides from there (2.1.332). An option that is not in the table may or may not
//! take the next word; where that can't be told, nothing is guessed.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Nothing.
    Nothing,
    /// The next word, whatever it is.
    One,
    /// The next word, unless that is an option.
    Maybe,
    /// Every word up to the next option.
    Many,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The new process gets it too.
    Keep,
    /// It chose the session or the way to print.
    Drop,
    /// A process with it is started by something else than a shell.
    Refuse,
}

const fn row(name: &'static str, takes: Takes, fate: Fate) -> (&'static str, Takes, Fate) {
    (name, takes, fate)
}

use Fate::{Drop, Keep, Refuse};
use Takes::{Many, Maybe, Nothing, One};

/// Options of the main command, 2.1.332.
const OPTIONS: &[(&str, Takes, Fate)] = &[
    row("--add-dir", Many, Keep),
    row("--advisor", One, Keep),
    row("--agent", One, Keep),
    row("--agents", One, Keep),
    row("--allow-dangerously-skip-permissions", Nothing, Keep),
    row("--allowed-tools", Many, Keep),
    row("--allowedTools", Many, Keep),
    row("--append-subagent-system-prompt", One, Keep),
    row("--append-subagent-system-prompt-file", One, Keep),
    row("--append-system-prompt", One, Keep),
    row("--append-system-prompt-file", One, Keep),
    row("--autocompact", One, Keep),
    row("--ax-screen-reader", Nothing, Keep),
    row("--background", Nothing, Refuse),
    row("--bare", Nothing, Keep),
    row("--betas", Many, Keep),
    row("--bg", Nothing, Refuse),
    row("--brief", Nothing, Keep),
    row("--channels", Many, Keep),
    row("--chrome", Nothing, Keep),
    row("--cloud", Maybe, Refuse),
    row("--continue", Nothing, Drop),
    row("--dangerously-load-development-channels", Many, Keep),
    row("--dangerously-skip-permissions", Nothing, Keep),
    row("--debug", Maybe, Keep),
    row("--debug-file", One, Keep),
    row("--desktop", Nothing, Refuse),
    row("--disable-slash-commands", Nothing, Keep),
    row("--disallowed-tools", Many, Keep),
    row("--disallowedTools", Many, Keep),
    row("--effort", One, Keep),
    row("--enable-auto-mode", Nothing, Keep),
    row("--environment", One, Refuse),
    row("--exclude-dynamic-system-prompt-sections", Nothing, Keep),
    row("--fallback-model", One, Keep),
    row("--file", Many, Keep),
    row("--fork-session", Nothing, Drop),
    row("--forward-subagent-text", Nothing, Keep),
    row("--from-pr", Maybe, Drop),
    row("--ide", Nothing, Keep),
    row("--include-hook-events", Nothing, Keep),
    row("--include-partial-messages", Nothing, Keep),
    row("--input-format", One, Refuse),
    row("--json-schema", One, Keep),
    row("--managed-settings", One, Keep),
    row("--max-budget-usd", One, Keep),
    row("--max-thinking-tokens", One, Keep),
    row("--max-turns", One, Keep),
    row("--mcp-config", Many, Keep),
    row("--model", One, Keep),
    row("--name", One, Keep),
    row("--no-chrome", Nothing, Keep),
    row("--no-session-persistence", Nothing, Refuse),
    row("--output-format", One, Keep),
    row("--permission-mode", One, Keep),
    row("--permission-prompt-tool", One, Keep),
    row("--permission-prompts", One, Keep),
    row("--plugin-dir", One, Keep),
    row("--plugin-dir-no-mcp", One, Keep),
    row("--plugin-url", One, Keep),
    row("--prefill", One, Drop),
    row("--prefill-b64", One, Drop),
    row("--print", Nothing, Drop),
    row("--prompt-suggestions", Maybe, Keep),
    row("--rc", Maybe, Keep),
    row("--remote", Maybe, Refuse),
    row("--remote-control", Maybe, Keep),
    row("--remote-control-session-name-prefix", One, Keep),
    row("--replay-user-messages", Nothing, Keep),
    row("--restricted", Nothing, Keep),
    row("--resume", Maybe, Drop),
    row("--resume-drops-turn", One, Drop),
    row("--resume-session-at", One, Drop),
    row("--safe-mode", Nothing, Keep),
    row("--session-id", One, Drop),
    row("--setting-sources", One, Keep),
    row("--settings", One, Keep),
    row("--strict-mcp-config", Nothing, Keep),
    row("--system-prompt", One, Keep),
    row("--system-prompt-file", One, Keep),
    row("--system-prompt-snapshot", One, Keep),
    row("--task-budget", One, Keep),
    row("--teammate-mode", One, Keep),
    row("--teleport", Maybe, Drop),
    row("--thinking", One, Keep),
    row("--thinking-display", One, Keep),
    row("--tmux", Nothing, Refuse),
    row("--tools", Many, Keep),
    row("--verbose", Nothing, Keep),
    row("--worktree", Maybe, Keep),
    row("-c", Nothing, Drop),
    row("-d", Maybe, Keep),
    row("-n", One, Keep),
    row("-p", Nothing, Drop),
    row("-r", Maybe, Drop),
    row("-w", Maybe, Keep),
];

/// Programs that run a script: the script is then the client.
const INTERPRETERS: &[&str] = &["bash", "bun", "dash", "node", "sh", "zsh"];

/// A command line taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientArgv {
    /// The program: one word, or an interpreter and its script.
    pub program: Vec<OsString>,
    /// The options that the new process gets too, in their order.
    pub kept: Vec<OsString>,
}

impl ClientArgv {
    /// Takes a command line apart.
    ///
    /// # Errors
    /// Why it can't be used, in words: an option of unknown form before a word, or
    /// one that only another starter than a shell can serve.
    pub fn parse(argv: &[OsString]) -> Result<Self, String> {
        let mut rest = argv.iter().map(OsString::as_os_str).peekable();
        let first = rest.next().ok_or("the command line is empty")?;
        let mut apart = Self {
            program: vec![first.to_owned()],
            kept: Vec::new(),
        };
        if is_interpreter(first)
            && let Some(script) = rest.next_if(|word| !is_option(word))
        {
            apart.program.push(script.to_owned());
        }
        while let Some(word) = rest.next() {
            if word == "--" {
                break; // Only the prompt can follow.
            }
            if !is_option(word) {
                continue; // The prompt.
            }
            let (name, has_value) = name_of(word);
            let (takes, fate) = match lookup(name) {
                Some(known) => known,
                None if has_value => (Nothing, Keep),
                None if rest.peek().is_none_or(|next| is_option(next)) => (Nothing, Keep),
                None => {
                    return Err(format!(
                        "the option {} is not known to this version",
                        word.to_string_lossy()
                    ));
                }
            };
            let mut with_value = vec![word.to_owned()];
            if !has_value {
                match takes {
                    Nothing => {}
                    One => with_value.extend(rest.next().map(OsStr::to_owned)),
                    Maybe => with_value.extend(rest.next_if(|next| !is_option(next)).map(OsStr::to_owned)),
                    Many => {
                        while let Some(next) = rest.next_if(|next| !is_option(next)) {
                            with_value.push(next.to_owned());
                        }
                    }
                }
            }
            match fate {
                Keep => apart.kept.append(&mut with_value),
                Drop => {}
                Refuse => {
                    return Err(format!(
                        "a session with {} is not started from a shell",
                        name.to_string_lossy()
                    ));
                }
            }
        }
        Ok(apart)
    }

    /// The command line that resumes the session with the kept options, and says
    /// `prompt` first where there is one.
    ///
    /// The session and the prompt come last: an option that takes many words
    /// would swallow a prompt that followed it.
    pub fn resume(&self, sid: &str, prompt: Option<&str>) -> Vec<OsString> {
        let mut words = self.program.clone();
        words.extend(self.kept.iter().cloned());
        words.extend(["--resume".into(), sid.into()]);
        words.extend(prompt.map(OsString::from));
        words
    }
}

fn is_option(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    bytes.len() > 1 && bytes.starts_with(b"-")
}

fn is_interpreter(program: &OsStr) -> bool {
    std::path::Path::new(program)
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| INTERPRETERS.contains(&name))
}

/// The option's name, and whether its value stands in the same word
/// (`--model=opus`, `-nname`).
fn name_of(word: &OsStr) -> (&OsStr, bool) {
    let bytes = word.as_bytes();
    if bytes.starts_with(b"--") {
        return match bytes.iter().position(|byte| *byte == b'=') {
            Some(end) => (OsStr::from_bytes(bytes.get(..end).unwrap_or(bytes)), true),
            None => (word, false),
        };
    }
    let short = bytes.get(..2).map_or(word, OsStr::from_bytes);
    match lookup(short) {
        Some((One | Maybe | Many, _)) => (short, bytes.len() > 2),
        // Several flags in one word are looked up, and not found, as a whole.
        _ => (word, false),
    }
}

fn lookup(name: &OsStr) -> Option<(Takes, Fate)> {
    let row = OPTIONS.iter().find(|(known, ..)| OsStr::new(known) == name)?;
    Some((row.1, row.2))
}

/// The words as one line for an interactive shell, in printable text only: it is
/// typed into a terminal, where a control character would act.
///
/// Plain words stay as they are; others are quoted; control characters and bytes
/// that are not UTF-8 go into the `$'…'` form, which bash, zsh and ksh know.
pub fn shell_line(words: &[OsString]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    quoted.join(" ")
}

fn shell_word(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match word.to_str() {
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let mut line = String::from("$'");
            for chunk in bytes.utf8_chunks() {
                for letter in chunk.valid().chars() {
                    match letter {
                        '\'' | '\\' => line.extend(['\\', letter]),
                        _ if letter.is_control() => {
                            let mut buffer = [0; 4];
                            push_octal(&mut line, letter.encode_utf8(&mut buffer).as_bytes());
                        }
                        _ => line.push(letter),
                    }
                }
                push_octal(&mut line, chunk.invalid());
            }
            line.push('\'');
            line
        }
    }
}

fn push_octal(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can't fail.
        write!(line, "\\{byte:03o}").ok();
    }
}

/// A word as text that holds it whole, for JSON: percent signs, control
/// characters and bytes that are not UTF-8 are written as `%XX`.
pub fn to_text(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '%' || letter.is_ascii_control() {
                write!(text, "%{:02X}", u32::from(letter)).ok();
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}

/// Takes [`to_text`] back; `None` for a text that it never writes.
pub fn from_text(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*byte);
        }
    }
    Some(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    #[test]
    fn everything_is_kept_but_the_session_and_the_prompt() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["claude"], &[]),
            (&["claude", "fix the tests"], &[]),
            (
                &[
                    "claude",
                    "--model",
                    "opus",
                    "--dangerously-skip-permissions",
                    "go",
                ],
                &["--model", "opus", "--dangerously-skip-permissions"],
            ),
            (&["claude", "--resume", "s1", "go"], &[]),
            (&["claude", "--resume"], &[]),
            (&["claude", "--resume", "--model", "opus"], &["--model", "opus"]),
            (&["claude", "-r", "s1", "-c", "--fork-session", "go"], &[]),
            (&["claude", "-rs1", "--continue"], &[]),
            (&["claude", "--session-id", "s1", "--verbose"], &["--verbose"]),
            (&["claude", "--session-id=s1", "--verbose"], &["--verbose"]),
            (&["claude", "-p", "go"], &[]),
            (
                &["claude", "--add-dir", "a", "b", "--model=opus", "go"],
                &["--add-dir", "a", "b", "--model=opus"],
            ),
            (
                &[
                    "claude",
                    "go",
                    "--allowedTools",
                    "Bash(git *)",
                    "Edit",
                    "--mcp-config",
                    "m.json",
                ],
                &["--allowedTools", "Bash(git *)", "Edit", "--mcp-config", "m.json"],
            ),
            (
                &["claude", "--append-system-prompt", "--looks-like-an-option", "go"],
                &["--append-system-prompt", "--looks-like-an-option"],
            ),
            (&["claude", "--debug", "hooks", "go"], &["--debug", "hooks"]),
            (&["claude", "-d", "--", "--model", "is a prompt here"], &["-d"]),
            (&["claude", "-nmy name", "go"], &["-nmy name"]),
            (&["claude", "--tomorrow=1", "go"], &["--tomorrow=1"]),
            (&["claude", "go", "--tomorrow"], &["--tomorrow"]),
            (
                &["claude", "--tools", "", "--verbose"],
                &["--tools", "", "--verbose"],
            ),
            (&["claude", "-"], &[]),
        ];
        for (argv, kept) in cases {
            let parsed = ClientArgv::parse(&words(argv)).unwrap();
            assert_eq!(parsed.program, words(&["claude"]), "{argv:?}");
            assert_eq!(parsed.kept, words(kept), "{argv:?}");
        }
    }

    #[test]
    fn nothing_is_guessed() {
        for argv in [
            &["claude", "--tomorrow", "go"][..],
            &["claude", "-xy", "go"],
            &["claude", "--bg", "go"],
            &["claude", "--worktree", "x", "--tmux"],
            &["claude", "--input-format", "stream-json", "-p"],
            &[],
        ] {
            assert!(ClientArgv::parse(&words(argv)).is_err(), "{argv:?}");
        }
    }

    #[test]
    fn a_script_behind_its_interpreter_is_the_program() {
        let parsed = ClientArgv::parse(&words(&["/bin/sh", "/opt/claude", "--model", "opus", "go"])).unwrap();
        assert_eq!(parsed.program, words(&["/bin/sh", "/opt/claude"]));
        assert_eq!(parsed.kept, words(&["--model", "opus"]));
    }

    #[test]
    fn the_prompt_stands_where_no_option_swallows_it() {
        let parsed = ClientArgv::parse(&words(&["claude", "--add-dir", "a", "--resume", "old"])).unwrap();
        assert_eq!(
            parsed.resume("s1", Some("rungs: go on")),
            words(&["claude", "--add-dir", "a", "--resume", "s1", "rungs: go on"])
        );
        // Taking a restarted session's line apart again changes nothing.
        let again = ClientArgv::parse(&parsed.resume("s1", Some("rungs: go on"))).unwrap();
        assert_eq!(again, parsed);
    }

    #[test]
    fn a_shell_line_is_printable_and_exact() {
        let odd = OsString::from_vec(b"a'b\xff\n\\c".to_vec());
        let line = shell_line(&[
            "claude".into(),
            "it's".into(),
            "two words".into(),
            "".into(),
            "größe".into(),
            odd,
        ]);
        assert_eq!(
            line,
            r"claude 'it'\''s' 'two words' '' 'größe' $'a\'b\377\012\\c'"
        );
        assert!(!line.chars().any(char::is_control));
    }

    #[test]
    fn text_holds_every_word_whole() {
        for bytes in [&b"plain"[..], b"100%\n\t", b"\xff\xfe", "größe".as_bytes(), b""] {
            let word = OsString::from_vec(bytes.to_vec());
            assert_eq!(from_text(&to_text(&word)), Some(word));
        }
        assert_eq!(from_text("%4"), None);
        assert_eq!(from_text("%zz"), None);
    }
}
