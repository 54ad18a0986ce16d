//! `rungs goal`: states, shows, pauses, resumes and ends a session's goal.
//!
//! The session is the one that the command runs in, as the client tells its own
//! children (`CLAUDE_CODE_SESSION_ID`), or the one given in full with `--sid`.
//! It is never looked up by a name or a short id: those are reused, and a goal
//! on the wrong session holds the wrong session.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use shared::edge::lock::{self, Lock};
use shared::edge::state::{Durability, State};
use shared::edge::{clock, env};
use shared::pure::goal::{self, By, Document, Goal, Standing, TEXT_CHARS_MAX};
use shared::pure::session_id::SessionId;
use shared::pure::time_text;

/// How long to wait for another `rungs goal` of the same session (ms).
const LOCK_WAIT_MS: u64 = 2000;

/// The words after `rungs goal`.
#[derive(Debug, Args)]
pub(crate) struct GoalArgs {
    #[command(subcommand)]
    verb: Verb,
    /// The session's full id; without it, the session that this runs in.
    #[arg(long, global = true)]
    sid: Option<String>,
    /// The state root, where it is neither `$RUNGS_HOME` nor `~/.rungs`.
    #[arg(long, global = true)]
    root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// State the goal, in place of an earlier one.
    Set {
        /// The goal in words.
        text: String,
    },
    /// Show the goal and where it stands.
    Show {
        /// Print the goal file's fields as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Record that the goal is reached.
    Done,
    /// Set the goal aside: the session may stop.
    Pause,
    /// Take a paused goal up again.
    Resume,
}

/// Runs a verb.
///
/// # Errors
/// One line that names what is wrong and the way out.
pub(crate) fn run(args: &GoalArgs) -> anyhow::Result<()> {
    let sid = session(args.sid.as_deref())?;
    let root = args.root.clone().or_else(State::default_path);
    let root = root.context("no state root: set HOME or RUNGS_HOME, or pass --root")?;
    let state = State::open_root(&root)
        .with_context(|| format!("the state root {} can't be used", root.display()))?;
    let desk = Desk { state, sid };
    match &args.verb {
        Verb::Set { text } => desk.set(text),
        Verb::Show { json } => desk.show(*json),
        Verb::Done => desk.done(),
        Verb::Pause => desk.pause(),
        Verb::Resume => desk.resume(),
    }
}

/// The session: named in full, or the one that we run in.
fn session(named: Option<&str>) -> anyhow::Result<SessionId> {
    let own = env::text(env::CLAUDE_CODE_SESSION_ID);
    let Some(text) = named.or(own.as_deref()) else {
        bail!("no session: run it inside a session, or name one with --sid and its full id");
    };
    match SessionId::parse(text).filter(|sid| is_full(sid.as_str())) {
        Some(sid) => Ok(sid),
        None => bail!(
            "{:?} is no full session id: expected a UUID such as 42c4d508-4d22-47e5-b86c-6edb7aab8318",
            text.chars().take(80).collect::<String>()
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
    fn set(&self, text: &str) -> anyhow::Result<()> {
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
        let _lock = self.lock()?;
        let mut document = self.read()?.unwrap_or_else(|| Document::new(&self.sid));
        document.set(text, by(), clock::now_ms());
        self.write(&document)?;
        self.say("open")
    }

    fn show(&self, json: bool) -> anyhow::Result<()> {
        let Some(bytes) = self.bytes()? else {
            bail!("{}", self.no_goal());
        };
        let goal = Goal::read(&bytes, &self.sid).map_err(|why| self.unreadable(&why))?;
        if json {
            std::io::stdout().write_all(&bytes)?;
            return Ok(());
        }
        let set = match (goal.set_at, goal.set_by) {
            (Some(at), Some(by)) => format!(", set {} by a {}", time_text::rfc3339_s(at / 1000), by.word()),
            _ => String::new(),
        };
        writeln!(
            std::io::stdout(),
            "{} ({}{set})\n{}",
            self.sid,
            goal.state.word(),
            goal.text
        )?;
        Ok(())
    }

    fn done(&self) -> anyhow::Result<()> {
        let (_lock, mut document, standing) = self.take_up("end")?;
        if standing == Standing::Done {
            bail!("the goal of {} is done already", self.sid);
        }
        document.claim_done(by(), clock::now_ms());
        self.write(&document)?;
        self.say("done")
    }

    fn pause(&self) -> anyhow::Result<()> {
        let (_lock, mut document, standing) = self.take_up("pause")?;
        if standing != Standing::Open {
            bail!(
                "no open goal to pause: the goal of {} is {}",
                self.sid,
                standing.word()
            );
        }
        document.pause(by(), clock::now_ms());
        self.write(&document)?;
        self.say("paused")
    }

    fn resume(&self) -> anyhow::Result<()> {
        let (_lock, mut document, standing) = self.take_up("resume")?;
        if standing != Standing::Paused {
            bail!(
                "no paused goal to resume: the goal of {} is {}",
                self.sid,
                standing.word()
            );
        }
        document.resume();
        self.write(&document)?;
        self.say("open")
    }

    /// The goal, with the lock under which it may be changed.
    fn take_up(&self, verb: &str) -> anyhow::Result<(Lock, Document, Standing)> {
        let lock = self.lock()?;
        let Some(document) = self.read()? else {
            bail!("no goal to {verb}: {}", self.no_goal());
        };
        let goal = Goal::read(&document.to_bytes(), &self.sid).map_err(|why| self.unreadable(&why))?;
        Ok((lock, document, goal.state))
    }

    fn lock(&self) -> anyhow::Result<Lock> {
        let name = format!("goals/{}.lock", self.sid);
        let lock = lock::take(&self.state, &name, LOCK_WAIT_MS)
            .with_context(|| format!("{} can't be locked", self.path(&name)))?;
        lock.with_context(|| format!("another command holds {}: try again", self.path(&name)))
    }

    fn bytes(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let name = goal::name(&self.sid);
        self.state
            .read(&name)
            .with_context(|| format!("{} can't be read", self.path(&name)))
    }

    fn read(&self) -> anyhow::Result<Option<Document>> {
        let Some(bytes) = self.bytes()? else {
            return Ok(None);
        };
        let document = Document::read(&bytes, &self.sid).map_err(|why| self.unreadable(&why))?;
        Ok(Some(document))
    }

    fn write(&self, document: &Document) -> anyhow::Result<()> {
        let name = goal::name(&self.sid);
        self.state
            .replace(&name, &document.to_bytes(), Durability::Power)
            .with_context(|| format!("{} can't be written", self.path(&name)))
    }

    fn say(&self, standing: &str) -> anyhow::Result<()> {
        writeln!(std::io::stdout(), "goal {standing}: {}", self.sid)?;
        Ok(())
    }

    fn no_goal(&self) -> String {
        format!(
            "the session {} has none; `rungs goal set TEXT` states one",
            self.sid
        )
    }

    fn unreadable(&self, why: &goal::Unreadable) -> anyhow::Error {
        let way_out = match why {
            goal::Unreadable::Newer(_) => "upgrade rungs",
            _ => "move the file away and set the goal again",
        };
        anyhow::anyhow!("{} {why}: {way_out}", self.path(&goal::name(&self.sid)))
    }

    fn path(&self, name: &str) -> String {
        self.state.path().join(name).display().to_string()
    }
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
