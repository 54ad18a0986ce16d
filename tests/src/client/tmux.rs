//! Sessions in a terminal, as a person has them: tmux on a socket of its own.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::home::Home;
use super::registry::SessionFile;
use super::wait::{PATIENCE, wait_until};

/// The size of the terminal: wide, so that the client's sentences do not wrap.
const COLUMNS: &str = "200";
const ROWS: &str = "50";

/// What runs in the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// A shell, in which the client was typed as a command.
    Shell,
    /// The client itself: the pane ends with it.
    Client,
}

/// A terminal with one client in it. Dropping it ends the tmux server and the
/// client.
#[derive(Debug)]
pub struct Tmux<'home> {
    home: &'home Home,
    socket: PathBuf,
}

impl<'home> Tmux<'home> {
    /// Starts the client and waits until it is ready for a prompt.
    pub fn start(home: &'home Home, pane: Pane, arguments: &[&str]) -> Tmux<'home> {
        let number = home.next_number();
        let tmux = Tmux {
            home,
            socket: home.path().join(format!("tmux{number}")),
        };
        let known = home.sessions();
        let line = format!(
            "claude {}",
            arguments
                .iter()
                .map(|argument| quote(argument))
                .collect::<Vec<_>>()
                .join(" ")
        );
        let start = ["new-session", "-d", "-s", "main", "-x", COLUMNS, "-y", ROWS];
        match pane {
            Pane::Client => {
                // The shell that tmux puts in between must not stay the pane's process.
                let line = format!("exec {line}");
                tmux.run(&[&start[..], &[&line]].concat());
            }
            Pane::Shell => {
                tmux.run(&[&start[..], &["PS1='$ ' exec sh"]].concat());
                tmux.wait_for("$", PATIENCE);
                tmux.prompt(&line);
            }
        }
        let is_new = |session: &SessionFile| known.iter().all(|old| old.pid != session.pid);
        let ready = wait_until(PATIENCE, || {
            home.sessions()
                .iter()
                .any(|session| is_new(session) && session.status == "idle")
        });
        assert!(
            ready,
            "the client did not get ready; the screen:\n{}",
            tmux.screen()
        );
        tmux
    }

    /// Types a line and presses Enter.
    pub fn prompt(&self, text: &str) {
        self.type_text(text);
        // The client takes an Enter that follows too closely for a pasted line end.
        thread::sleep(Duration::from_millis(300));
        self.key("Enter");
    }

    /// Types without Enter.
    pub fn type_text(&self, text: &str) {
        self.run(&["send-keys", "-t", "main", "-l", text]);
    }

    /// Presses a key by its tmux name: `Enter`, `Escape`, `C-c`, ...
    pub fn key(&self, name: &str) {
        self.run(&["send-keys", "-t", "main", name]);
    }

    /// The visible screen, without the empty lines at its end.
    pub fn screen(&self) -> String {
        let screen = self.run(&["capture-pane", "-p", "-t", "main"]);
        screen.trim_end().to_owned()
    }

    /// The screen with all that scrolled out.
    pub fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "main", "-S", "-"])
    }

    /// Waits until the screen shows this and returns the screen.
    pub fn wait_for(&self, part: &str, patience: Duration) -> String {
        let shown = wait_until(patience, || self.screen().contains(part));
        assert!(
            shown,
            "{part:?} not within {patience:?} on the screen:\n{}",
            self.screen()
        );
        self.screen()
    }

    /// A value of the pane, e.g. `#{pane_pid}`.
    pub fn pane(&self, format: &str) -> String {
        self.run(&["display-message", "-p", "-t", "main", format])
            .trim()
            .to_owned()
    }

    /// Runs a tmux command on this server and returns what it prints.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command("tmux");
        command
            .args(["-S"])
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(arguments);
        command
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// One word of a shell line.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
