//! Where a session's process can be restarted: a tmux pane that provably is its
//! own.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::edge::proc::{self, ProcessId};
use crate::edge::tmux::Pane;
use serde::{Deserialize, Serialize};

/// How the client was started in its pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// From a shell that runs in the pane.
    Shell(ProcessId),
    /// As the pane's own command.
    PaneCommand,
}

/// A pane and the client in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The pane.
    pub pane: Pane,
    /// How the client was started in it.
    pub form: Form,
}

/// Programs that a person types commands into.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// The pane of a client.
///
/// # Errors
/// Why there is none that is provably its own.
pub fn of(pid: i32) -> Result<Terminal, String> {
    if proc::pid_namespace(pid) != proc::pid_namespace(proc::own_pid()) {
        return Err("it runs in another pid namespace".into());
    }
    let environ = proc::environ(pid).ok_or("the client's environment can't be read")?;
    let pane = Pane::of_environ(&environ).ok_or("it does not run in tmux")?;
    let view = pane.look().map_err(|why| format!("{why:#}"))?;
    let tty = proc::terminal(pid).ok_or("the client has no terminal")?;
    if view.is_dead || view.tty != tty {
        return Err(format!("the pane {} is not the client's", pane.id));
    }
    if view.pid == pid {
        let form = Form::PaneCommand;
        return Ok(Terminal { pane, form });
    }
    let shell = proc::parent_of(pid)
        .filter(|parent| is_typed_into(*parent, &tty))
        .and_then(ProcessId::of)
        .ok_or("it was started neither by a shell in the pane nor as the pane's command")?;
    let form = Form::Shell(shell);
    Ok(Terminal { pane, form })
}

/// Whether the process is a shell that reads commands from this terminal, and not
/// one that runs a script.
fn is_typed_into(pid: i32, tty: &PathBuf) -> bool {
    let Some(argv) = proc::argv(pid) else {
        return false;
    };
    let Some((program, rest)) = argv.split_first() else {
        return false;
    };
    let name = PathBuf::from(program);
    let name = name.file_name().and_then(OsStr::to_str).unwrap_or_default();
    SHELLS.contains(&name.trim_start_matches('-'))
        && rest.iter().all(|word| {
            let word = word.to_string_lossy();
            word.starts_with('-') && (word.starts_with("--") || !word.contains('c'))
        })
        && proc::terminal(pid).as_ref() == Some(tty)
}
