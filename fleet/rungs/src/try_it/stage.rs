//! The throw-away home: two made-up accounts, a shard, a client's folder.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use shared::edge::{clock, env, proc};
use shared::pure::time_text::rfc3339_ms;

/// One recorded event with the transcript that led to it.
pub(super) struct Recording {
    pub(super) sid: &'static str,
    pub(super) payload: &'static str,
    /// Lines of the transcript; empty where the event needs none.
    pub(super) transcript: &'static str,
}

/// Where the recordings are played.
pub(super) struct Stage {
    pub(super) bin: PathBuf,
    pub(super) root: PathBuf,
    claude: PathBuf,
    home: tempfile::TempDir,
}

impl Stage {
    pub(super) fn set(bin: PathBuf) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("rungs-try.").tempdir()?;
        let stage = Self {
            bin,
            root: home.path().join(".rungs"),
            claude: home.path().join(".claude"),
            home,
        };
        for folder in ["accounts/first", "accounts/second", "shards"] {
            private_folder(&stage.root.join(folder))?;
        }
        for account in ["first", "second"] {
            let login = json!({"claudeAiOauth": {
                "accessToken": format!("made-up-access-{account}"),
                "refreshToken": format!("made-up-refresh-{account}"),
                "expiresAt": clock::now_ms() + 8 * 3_600_000,
                "scopes": ["user:inference", "user:profile"],
                "subscriptionType": "max",
            }});
            let path = stage
                .root
                .join("accounts")
                .join(account)
                .join(".credentials.json");
            private_file(&path, &login.to_string())?;
        }
        symlink("../accounts/first", stage.root.join("shards/default"))?;
        let config = json!({"format": 1, "backoff_s_min": 1, "backoff_s_max": 1});
        private_file(&stage.root.join("config.json"), &config.to_string())?;
        private_folder(&stage.claude.join("sessions"))?;
        private_folder(&stage.project())?;
        private_folder(&stage.home.path().join("proj"))?;
        Ok(stage)
    }

    fn project(&self) -> PathBuf {
        let cwd = self.home.path().join("proj");
        let name: String = cwd
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        self.claude.join("projects").join(name)
    }

    /// The account that the shard leads to now.
    pub(super) fn account(&self) -> Result<String> {
        let target = fs_err::read_link(self.root.join("shards/default"))?;
        let name = target.file_name().context("the shard leads nowhere")?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// Lays the recorded transcript, as of now.
    pub(super) fn transcript(&self, recording: &Recording) -> Result<()> {
        let mut lines = String::new();
        for line in recording.transcript.lines() {
            lines.push_str(&self.fitted(recording, line)?.to_string());
            lines.push('\n');
        }
        private_file(&self.transcript_path(recording), &lines)
    }

    /// A recorded payload for this recording's session and turn, as of now.
    pub(super) fn payload(&self, recording: &Recording, recorded: &str) -> Result<String> {
        let mut payload = self.fitted(recording, recorded)?;
        let turn: Value = serde_json::from_str(recording.payload)?;
        if let (Some(id), Some(own)) = (payload.get_mut("prompt_id"), turn.get("prompt_id")) {
            id.clone_from(own);
        }
        Ok(format!("{payload}\n"))
    }

    fn transcript_path(&self, recording: &Recording) -> PathBuf {
        self.project().join(format!("{}.jsonl", recording.sid))
    }

    fn fitted(&self, recording: &Recording, recorded: &str) -> Result<Value> {
        let mut value: Value = serde_json::from_str(recorded)?;
        let transcript = self.transcript_path(recording);
        let cwd = self.home.path().join("proj");
        let resets_at = clock::now_ms() / 1000 + 3600;
        replace(&mut value, "sessionId", || recording.sid.into());
        replace(&mut value, "session_id", || recording.sid.into());
        replace(&mut value, "cwd", || cwd.to_string_lossy().into());
        replace(&mut value, "timestamp", || rfc3339_ms(clock::now_ms()).into());
        replace(&mut value, "transcript_path", || {
            transcript.to_string_lossy().into()
        });
        replace(&mut value, "resetsAt", || resets_at.into());
        for text in ["/last_assistant_message", "/message/content/0/text"] {
            if let Some(text) = value.pointer_mut(text) {
                refit_reset(text, resets_at);
            }
        }
        Ok(value)
    }

    /// What the client's register says of this process, which plays the client.
    pub(super) fn idle(&self, recording: &Recording) -> Result<()> {
        let pid = std::process::id();
        let now = clock::now_ms();
        let entry = json!({
            "pid": pid,
            "sessionId": recording.sid,
            "cwd": self.home.path().join("proj"),
            "startedAt": now,
            "procStart": proc::ProcessId::of(i32::try_from(pid)?).map_or(0, |me| me.start).to_string(),
            "version": "2.1.332",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": "idle",
            "statusUpdatedAt": now,
            "updatedAt": now,
        });
        private_file(
            &self.claude.join(format!("sessions/{pid}.json")),
            &entry.to_string(),
        )
    }

    /// A hook's environment as the client gives it, and nothing of ours.
    pub(super) fn environment(&self, command: &mut Command, recording: &Recording) {
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", env::value(env::PATH).unwrap_or_default())
            .env("TZ", "UTC")
            .env(env::CLAUDE_CONFIG_DIR, &self.claude)
            .env(
                env::CLAUDE_SECURESTORAGE_CONFIG_DIR,
                self.root.join("shards/default"),
            )
            .env(env::CLAUDE_PID, std::process::id().to_string())
            .env(env::CLAUDE_CODE_SESSION_ID, recording.sid)
            .env(env::CLAUDE_CODE_ENTRYPOINT, "cli")
            .current_dir(self.home.path().join("proj"));
    }
}

/// Replaces every value under a key, at any depth.
fn replace(value: &mut Value, key: &str, with: impl Fn() -> Value + Copy) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == key {
                    *member = with();
                } else {
                    replace(member, key, with);
                }
            }
        }
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|element| replace(element, key, with)),
        _ => {}
    }
}

/// "resets 11:16pm (UTC)" as of the new reset.
fn refit_reset(text: &mut Value, resets_at: i64) {
    let Some((before, _)) = text.as_str().and_then(|text| text.split_once("resets ")) else {
        return;
    };
    let minutes = resets_at / 60 % (24 * 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    let half = if hour < 12 { "am" } else { "pm" };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    *text = format!("{before}resets {hour}:{minute:02}{half} (UTC)").into();
}

fn private_folder(path: &Path) -> Result<()> {
    fs_err::create_dir_all(path)?;
    let mut folder = path;
    // Every folder on the way that is ours, the throw-away home included.
    while folder.starts_with(std::env::temp_dir()) && folder != std::env::temp_dir() {
        fs_err::set_permissions(folder, Permissions::from_mode(0o700))?;
        match folder.parent() {
            Some(parent) => folder = parent,
            None => break,
        }
    }
    Ok(())
}

fn private_file(path: &Path, text: &str) -> Result<()> {
    fs_err::write(path, text)?;
    fs_err::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(())
}
