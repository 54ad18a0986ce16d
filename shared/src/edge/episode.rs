//! One failed turn, one claim, one act.
//!
//! `session/<sid>/episodes/<prompt_id>` is made by the hook that acts, before it
//! acts, and by nobody else: a second hook for the same failure (installed twice,
//! or from settings and a plugin) finds it there and stands back. Intent goes to
//! disk, then the act, then the outcome.

use serde::{Deserialize, Serialize};

use crate::pure::session_id::{PromptId, SessionId};

use super::state::{Durability, State};

/// The format that this version writes.
pub const FORMAT: u32 = 1;

/// The record of one episode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The hook that owns it.
    pub actor: String,
    /// When it was claimed (ms since 1970).
    pub claimed_at: i64,
    /// The claimer's pid.
    pub pid: i32,
    /// The payload's `error`.
    pub error: String,
    /// The verdict and the kind of failure, as the classifier names them.
    pub verdict: String,
    /// Short name of the kind of failure.
    pub kind: String,
    /// What two identical failures have in common.
    pub fingerprint: Option<String>,
    /// What is being done: `move`, `wake`, `restart`, `park`, `wait`, `none`.
    pub intent: Option<String>,
    /// What became of it, in a word: `woken`, `moved`, `parked`, `restarted`,
    /// `stale`, `refused`, `signalled`, `failed`, `vetoed`, `exhausted`,
    /// `rolled-back`. None while under way.
    pub outcome: Option<String>,
    /// When the outcome was written (ms since 1970).
    pub done_at: Option<i64>,
    /// In words, for `rungs log`.
    pub why: String,
    /// Account left, where a move was made or tried.
    pub from: Option<String>,
    /// Account moved to.
    pub to: Option<String>,
}

/// A claimed episode.
#[derive(Debug)]
#[must_use]
pub struct Episode<'a> {
    state: &'a State,
    name: String,
    /// What is on disk, or will be with the next [`Episode::save`].
    pub record: Record,
}

/// The file's name under the root.
pub fn name(sid: &SessionId, prompt: &PromptId) -> String {
    format!("session/{sid}/episodes/{prompt}")
}

impl<'a> Episode<'a> {
    /// Claims the episode; `None` where another hook already has it.
    ///
    /// # Errors
    /// As the system says.
    pub fn claim(
        state: &'a State,
        sid: &SessionId,
        prompt: &PromptId,
        mut record: Record,
    ) -> anyhow::Result<Option<Self>> {
        record.format = FORMAT;
        record.pid = rustix::process::getpid().as_raw_nonzero().get();
        let name = name(sid, prompt);
        let bytes = serde_json::to_vec(&record)?;
        let claimed = state.create(&name, &bytes, Durability::Process)?;
        Ok(claimed.then_some(Self { state, name, record }))
    }

    /// Takes up an episode that was claimed before, to record its outcome; `None`
    /// where it is not there or not understood.
    pub fn reopen(state: &'a State, sid: &SessionId, prompt: &PromptId) -> Option<Self> {
        let name = name(sid, prompt);
        let bytes = state.read(&name).ok().flatten()?;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        (record.format <= FORMAT).then_some(Self { state, name, record })
    }

    /// Writes the record as it stands now.
    ///
    /// # Errors
    /// As the system says.
    pub fn save(&self) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(&self.record)?;
        self.state.replace(&self.name, &bytes, Durability::Process)?;
        Ok(())
    }

    /// Records what is about to be done.
    ///
    /// # Errors
    /// As the system says; then nothing must be done.
    pub fn intend(&mut self, intent: &str, why: &str) -> anyhow::Result<()> {
        self.record.intent = Some(intent.to_owned());
        why.clone_into(&mut self.record.why);
        self.save()
    }

    /// Records what became of it.
    ///
    /// # Errors
    /// As the system says.
    pub fn finish(&mut self, outcome: &str, why: &str, now: i64) -> anyhow::Result<()> {
        self.record.outcome = Some(outcome.to_owned());
        self.record.done_at = Some(now);
        why.clone_into(&mut self.record.why);
        self.save()
    }
}

/// Every episode of a session that can be read, and how many could not.
///
/// # Errors
/// The folder can't be read.
pub fn all(state: &State, sid: &SessionId) -> anyhow::Result<(Vec<(String, Record)>, usize)> {
    let folder = format!("session/{sid}/episodes");
    let mut records = Vec::new();
    let mut unread = 0;
    for prompt in state.list(&folder)? {
        // A name with a dot is a file still being written.
        if PromptId::parse(&prompt).is_none() {
            continue;
        }
        let read = state.read(&format!("{folder}/{prompt}")).ok().flatten();
        match read.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok()) {
            Some(record) if record.format <= FORMAT => records.push((prompt, record)),
            _ => unread += 1,
        }
    }
    records.sort_by_key(|(_, record)| record.claimed_at);
    Ok((records, unread))
}
