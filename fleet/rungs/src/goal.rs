//! `rungs goal`: states, shows, pauses, resumes and ends a session's goal.
//!
//! The session is the one that the command runs in, as the client tells its own
//! children (`CLAUDE_CODE_SESSION_ID`), or the one given in full with `--sid`.
//! It is never looked up by a name or a short id: those are reused, and a goal
//! on the wrong session holds the wrong session.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde_json::Value;
use shared::edge::json_file::{self, Object};
use shared::edge::state::{Durability, State};
use shared::edge::{clock, env};
use shared::pure::goal::{self, By, FORMAT, Goal, Standing, TEXT_CHARS_MAX};
use shared::pure::session_id::SessionId;
use shared::pure::time_text;

use crate::out;
use crate::places::{self, RootOption};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// Whose goal it is, and where it is kept.
#[derive(clap::Args)]
struct Target {
    /// The session's full id [default: the session that this runs in]
    #[arg(long)]
    sid: Option<String>,
    #[command(flatten)]
    root: RootOption,
}

#[derive(Subcommand)]
enum Verb {
    /// States the goal, in place of an earlier one
    Set {
        /// The goal in words
        text: String,
        #[command(flatten)]
        target: Target,
    },
    /// Shows the goal and where it stands
    Show {
        /// Print the goal file's fields
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Records that the goal is reached
    Done(Target),
    /// Sets the goal aside: the session may stop
    Pause(Target),
    /// Takes a paused goal up again
    Resume(Target),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.verb {
        Verb::Set { text, target } => Desk::of(target)?.set(text),
        Verb::Show { json, target } => Desk::of(target)?.show(*json),
        Verb::Done(target) => Desk::of(target)?.done(),
        Verb::Pause(target) => Desk::of(target)?.pause(),
        Verb::Resume(target) => Desk::of(target)?.resume(),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The session: named in full, or the one that we run in.
fn session(named: Option<&str>) -> Result<SessionId> {
    let own = env::text(env::CLAUDE_CODE_SESSION_ID);
    let text = named
        .or(own.as_deref())
        .context("no session: run it inside a session, or name one with --sid and its full id")?;
    match SessionId::parse(text).filter(|sid| is_full(sid.as_str())) {
        Some(sid) => Ok(sid),
        None => bail!(
            "\"{}\" is no full session id: expected a UUID such as 42c4d508-4d22-47e5-b86c-6edb7aab8318",
            out::bounded(text, 80)
        ),
    }
}

/// The client's ids are UUIDs; short ids and names must not pass as one.
fn is_full(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Who runs this: inside a session, the session.
fn by() -> By {
    if env::is_set(env::CLAUDE_CODE_SESSION_ID) {
        By::Session
    } else {
        By::Person
    }
}

/// One session's goal and the state that holds it.
struct Desk {
    state: State,
    sid: SessionId,
}

impl Desk {
    fn of(target: &Target) -> Result<Self> {
        Ok(Self {
            sid: session(target.sid.as_deref())?,
            state: places::open(&target.root.path()?)?,
        })
    }

    fn set(&self, text: &str) -> Result<()> {
        let text = text.trim();
        if text.is_empty() {
            bail!("the goal is empty: say in words what is to be reached");
        }
        let length = text.chars().count();
        if length > TEXT_CHARS_MAX {
            bail!(
                "the goal has {length} characters, at most {TEXT_CHARS_MAX} are kept: \
                 put the details into a file and name it in the goal"
            );
        }
        self.change(Standing::Open, |file, _| {
            file.set("text", text)?;
            file.set("set_at", clock::now_ms())?;
            file.set("set_by", by())?;
            forget(
                file,
                &["paused_at", "paused_by", "claimed_done_at", "claimed_done_by"],
            )
        })
    }

    fn show(&self, json: bool) -> Result<()> {
        let name = goal::name(&self.sid);
        let bytes = self
            .state
            .read(&name)
            .with_context(|| format!("{name} can't be read"))?;
        let bytes = bytes.with_context(|| self.no_goal())?;
        let goal = Goal::read(&bytes, &self.sid).with_context(|| name)?;
        if json {
            out::json(&serde_json::from_slice(&bytes)?);
            return Ok(());
        }
        let set = match (goal.set_at, goal.set_by) {
            (Some(at), Some(by)) => format!(", set {} by a {}", time_text::rfc3339_s(at / 1000), by.word()),
            _ => String::new(),
        };
        out::line(&format!("{} ({}{set})", self.sid, goal.state.word()));
        for line in goal.text.lines() {
            out::line(&out::bounded(line, TEXT_CHARS_MAX));
        }
        Ok(())
    }

    fn done(&self) -> Result<()> {
        self.change(Standing::Done, |file, standing| {
            if self.known(standing)? == Standing::Done {
                bail!("the goal of {} is done already", self.sid);
            }
            file.set("claimed_done_at", clock::now_ms())?;
            file.set("claimed_done_by", by())
        })
    }

    fn pause(&self) -> Result<()> {
        self.change(Standing::Paused, |file, standing| {
            let standing = self.known(standing)?;
            if standing != Standing::Open {
                bail!(
                    "no open goal to pause: the goal of {} is {}",
                    self.sid,
                    standing.word()
                );
            }
            file.set("paused_at", clock::now_ms())?;
            file.set("paused_by", by())
        })
    }

    fn resume(&self) -> Result<()> {
        self.change(Standing::Open, |file, standing| {
            let standing = self.known(standing)?;
            if standing != Standing::Paused {
                bail!(
                    "no paused goal to resume: the goal of {} is {}",
                    self.sid,
                    standing.word()
                );
            }
            forget(file, &["paused_at", "paused_by"])
        })
    }

    /// Changes the goal file and says where the goal then stands. `change` is
    /// told where it stood; none where there was no goal.
    fn change(
        &self,
        standing: Standing,
        change: impl FnOnce(&mut Object, Option<Standing>) -> Result<()>,
    ) -> Result<()> {
        let name = goal::name(&self.sid);
        json_file::change(&self.state, &name, FORMAT.into(), Durability::Power, |file| {
            let owner: Option<String> = file.field("sid")?;
            if let Some(owner) = owner.filter(|owner| owner != self.sid.as_str()) {
                bail!(
                    "{name} names another session ({}): move it away to begin anew",
                    out::bounded(&owner, 64)
                );
            }
            let before: Option<Standing> = file.field("state")?;
            change(file, before)?;
            let revision: u64 = file.field("revision")?;
            file.set("sid", self.sid.as_str())?;
            file.set("state", standing)?;
            file.set("revision", revision.saturating_add(1))
        })?;
        out::line(&format!("goal {}: {}", standing.word(), self.sid));
        Ok(())
    }

    fn known(&self, standing: Option<Standing>) -> Result<Standing> {
        standing.with_context(|| self.no_goal())
    }

    fn no_goal(&self) -> String {
        format!(
            "the session {} has no goal; `rungs goal set TEXT` states one",
            self.sid
        )
    }
}

/// Empties fields that belong to an earlier standing.
fn forget(file: &mut Object, fields: &[&str]) -> Result<()> {
    for field in fields {
        if file.field::<Value>(field)? != Value::Null {
            file.set(field, Value::Null)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_full;

    #[test]
    fn only_a_whole_uuid_names_a_session() {
        assert!(is_full("42c4d508-4d22-47e5-b86c-6edb7aab8318"));
        for bad in [
            "",
            "42c4d508",
            "my-session",
            "42c4d508-4d22-47e5-b86c-6edb7aab831g",
            "42c4d5084d2247e5b86c6edb7aab8318",
        ] {
            assert!(!is_full(bad), "{bad}");
        }
    }
}
