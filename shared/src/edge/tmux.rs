//! tmux: the pane that a session runs in, and the few things done to it.
//!
//! The server and the pane come from the client's own environment, since there
//! may be several servers, or one inside another. Each call is bounded: a server
//! that hangs costs a second or two and nothing else. The pane is looked at only
//! to veto an act, never to cause one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use super::spawn;

const LIMIT: Duration = Duration::from_secs(2);

/// A pane of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    /// The server's socket.
    pub socket: PathBuf,
    /// The pane's id, as `%3`.
    pub id: String,
}

/// What tmux says of a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The process that the pane was made for.
    pub pid: i32,
    /// The pane's terminal.
    pub tty: PathBuf,
    /// Whether that process has ended and the pane stayed.
    pub is_dead: bool,
    /// Whether a person scrolls or searches in it.
    pub is_in_mode: bool,
}

impl Pane {
    /// The pane named in a client's environment (`TMUX`, `TMUX_PANE`).
    pub fn of_environ(environ: &[OsString]) -> Option<Self> {
        let value = |name: &[u8]| {
            environ.iter().find_map(|word| {
                let rest = word.as_bytes().strip_prefix(name)?.strip_prefix(b"=")?;
                Some(rest.to_vec()).filter(|rest| !rest.is_empty())
            })
        };
        let tmux = value(b"TMUX")?;
        let socket = tmux.split(|byte| *byte == b',').next()?;
        let id = String::from_utf8(value(b"TMUX_PANE")?).ok()?;
        let digits = id.strip_prefix('%')?;
        let is_id = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_id && socket.starts_with(b"/")).then(|| Self {
            socket: PathBuf::from(OsStr::from_bytes(socket)),
            id,
        })
    }

    /// What the server says of the pane now.
    ///
    /// # Errors
    /// No answer, no such pane, or an answer of unknown form.
    pub fn look(&self) -> anyhow::Result<View> {
        let format = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_in_mode} #{pane_tty}";
        let answer = self.ask("list-panes", ["-a", "-F", format])?;
        for line in answer.lines() {
            let mut words = line.splitn(5, ' ');
            if words.next() != Some(self.id.as_str()) {
                continue;
            }
            let view = (|| {
                Some(View {
                    pid: words.next()?.parse().ok()?,
                    is_dead: words.next()? == "1",
                    is_in_mode: words.next()? == "1",
                    tty: PathBuf::from(words.next()?),
                })
            })();
            return view.with_context(|| format!("tmux described the pane {} in an unknown form", self.id));
        }
        bail!("tmux has no pane {}", self.id)
    }

    /// The pane's visible text, with its colours.
    ///
    /// # Errors
    /// No answer.
    pub fn capture(&self) -> anyhow::Result<String> {
        self.ask("capture-pane", ["-p", "-e", "-t", &self.id])
    }

    /// Types a line into the pane and ends it.
    ///
    /// # Errors
    /// The server refused a part of it.
    pub fn type_line(&self, line: &str) -> anyhow::Result<()> {
        self.ask("send-keys", ["-t", &self.id, "-l", "--", line])?;
        self.ask("send-keys", ["-t", &self.id, "Enter"]).map(drop)
    }

    /// Whether the pane stays when its own process ends; `None` gives the choice
    /// back to the person's settings.
    ///
    /// # Errors
    /// The server refused.
    pub fn set_remain(&self, remain: Option<bool>) -> anyhow::Result<()> {
        match remain {
            Some(on) => {
                let on = if on { "on" } else { "off" };
                self.ask("set-option", ["-p", "-t", &self.id, "remain-on-exit", on])
            }
            None => self.ask("set-option", ["-p", "-u", "-t", &self.id, "remain-on-exit"]),
        }
        .map(drop)
    }

    /// Starts another process as the pane's own, word by word without a shell.
    ///
    /// # Errors
    /// The server refused.
    pub fn respawn(&self, cwd: &Path, words: &[OsString]) -> anyhow::Result<()> {
        let mut all: Vec<&OsStr> = ["-k", "-t", &self.id, "-c"].map(OsStr::new).to_vec();
        all.push(cwd.as_os_str());
        all.push(OsStr::new("--"));
        all.extend(words.iter().map(OsString::as_os_str));
        self.ask("respawn-pane", all).map(drop)
    }

    fn ask(&self, verb: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<String> {
        let mut command = spawn::command("tmux");
        command.arg("-S").arg(&self.socket).arg(verb);
        command.args(words.into_iter().map(|word| not_a_separator(word.as_ref())));
        let output = spawn::run(command, None, LIMIT).context("tmux can't be started")?;
        if output.status.is_none() {
            bail!("tmux {verb} did not end within {} s", LIMIT.as_secs());
        }
        if !output.is_success() {
            bail!("tmux {verb} failed: {}", output.stderr_text().trim());
        }
        Ok(output.stdout_text())
    }
}

/// The word as tmux takes it: one that ends in `;` would end the command there.
fn not_a_separator(word: &OsStr) -> OsString {
    match word.as_bytes().strip_suffix(b";") {
        Some(rest) => OsString::from_vec([rest, br"\;"].concat()),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_is_named_by_the_environment() {
        let cases: [(&[&str], Option<&str>); 6] = [
            (&["A=1", "TMUX=/tmp/tmux-0/m,12,0", "TMUX_PANE=%3"], Some("%3")),
            (&["TMUX=/tmp/tmux-0/m,12,0"], None),
            (&["TMUX_PANE=%3"], None),
            (&["TMUX=", "TMUX_PANE=%3"], None),
            (&["TMUX=relative,1,0", "TMUX_PANE=%3"], None),
            (&["TMUX=/s,1,0", "TMUX_PANE=-t"], None),
        ];
        for (environ, id) in cases {
            let words: Vec<OsString> = environ.iter().map(OsString::from).collect();
            assert_eq!(
                Pane::of_environ(&words).map(|pane| pane.id).as_deref(),
                id,
                "{environ:?}"
            );
        }
    }

    #[test]
    fn a_semicolon_ends_no_command() {
        assert_eq!(not_a_separator(OsStr::new("a;b;")), r"a;b\;");
        assert_eq!(not_a_separator(OsStr::new("a;b")), "a;b");
    }

    #[test]
    fn a_dead_socket_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let pane = Pane {
            socket: dir.path().join("none"),
            id: "%0".into(),
        };
        assert!(pane.look().is_err());
    }
}
