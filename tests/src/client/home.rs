//! A throw-away home: logged in with made-up tokens, past all first-run
//! questions, pointed at the mock API, and with nothing of the real user in it.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::locate::Client;
use super::processes;
use crate::files::{make_private, read_json};
use crate::login::Login;
use crate::mock_api::MockApi;

/// The home of the sessions of one test. Dropping it ends every process that
/// still runs in it.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    environment: BTreeMap<String, String>,
    terminals: AtomicU32,
}

impl Home {
    /// An empty home, logged in with this login.
    pub fn new(client: &Client, api: &MockApi, login: &Login) -> Home {
        let folder = tempfile::Builder::new().prefix("rungs-").tempdir().unwrap();
        let mut home = Home {
            environment: BTreeMap::new(),
            terminals: AtomicU32::new(0),
            folder,
        };
        for sub in [".claude", "project", "bin"] {
            fs_err::create_dir(home.path().join(sub)).unwrap();
        }
        symlink(client.binary(), home.path().join("bin/claude")).unwrap();
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", home.path().display());
        let home_path = home.path().display().to_string();
        let url = api.url();
        let variables: [(&str, &str); 15] = [
            ("HOME", &home_path),
            ("PATH", &path),
            ("SHELL", "/bin/sh"),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
            ("ANTHROPIC_BASE_URL", &url),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            // One attempt a request: what a test provokes is what it sees.
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            // Lets root skip the permission questions.
            ("IS_SANDBOX", "1"),
            ("USER", "nobody"),
            ("LOGNAME", "nobody"),
        ];
        for (name, value) in variables {
            home.set(name, value);
        }
        login.write(&home.config());
        home.write_state(login, Client::version());
        home.write_settings(&json!({}));
        home
    }

    /// What `$HOME` is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The client's own folder, `~/.claude`.
    pub fn config(&self) -> PathBuf {
        self.path().join(".claude")
    }

    /// The working directory of the sessions; its trust question is answered.
    pub fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    /// Sets a variable for everything that is started from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Removes a variable for everything that is started from now on.
    pub fn unset(&mut self, name: &str) {
        self.environment.remove(name);
    }

    /// A command in this home's environment and project, nothing inherited.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.environment)
            .current_dir(self.project());
        command
    }

    /// The client as this home knows it: a command named `claude`.
    pub fn claude(&self) -> Command {
        self.command(self.path().join("bin/claude"))
    }

    /// Replaces the user's settings. The one line that a test home always needs
    /// is added: the question about skipped permissions is answered.
    pub fn write_settings(&self, settings: &Value) {
        let mut settings = settings.clone();
        settings["skipDangerousModePermissionPrompt"] = json!(true);
        let text = serde_json::to_string_pretty(&settings).unwrap();
        fs_err::write(self.config().join("settings.json"), text).unwrap();
    }

    /// The user's settings as they are now.
    pub fn settings(&self) -> Value {
        read_json(&self.config().join("settings.json")).unwrap_or(Value::Null)
    }

    /// A number for a further terminal.
    pub(super) fn next_number(&self) -> u32 {
        self.terminals.fetch_add(1, Ordering::Relaxed)
    }

    fn write_state(&self, login: &Login, version: &str) {
        let project = self.project().display().to_string();
        let state = json!({
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": version,
            "theme": "dark",
            "numStartups": 5,
            "bypassPermissionsModeAccepted": true,
            "autoUpdates": false,
            "projects": { project: {
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
                "projectOnboardingSeenCount": 4,
                "allowedTools": []
            } },
            "oauthAccount": {
                "accountUuid": "00000000-0000-4000-8000-000000000001",
                "emailAddress": format!("{}@example.com", login.account.to_lowercase()),
                "organizationUuid": "00000000-0000-4000-8000-000000000002",
                "organizationName": "Example",
                "organizationRole": "admin",
                "displayName": login.account,
                "hasExtraUsageEnabled": false,
                "billingType": "stripe_subscription"
            }
        });
        let path = self.path().join(".claude.json");
        fs_err::write(&path, state.to_string()).unwrap();
        make_private(&path);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        processes::end_all_of(self.path());
    }
}
