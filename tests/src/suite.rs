//! The suite as a person has it: installed into a throw-away home by its own
//! tools, with accounts of made-up logins.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Home, PATIENCE, wait_for};
use crate::executables::executable;
use crate::files::{make_private, read_json, read_json_lines};
use crate::login::Login;

/// An installed suite.
#[derive(Debug)]
pub struct Suite<'home> {
    home: &'home Home,
}

impl<'home> Suite<'home> {
    /// Installs the hooks and adopts the home's login as the account `A`.
    pub fn install(home: &'home Home) -> Self {
        let suite = Self { home };
        suite.run("rungs", &["install"]);
        suite.run("ccswitch", &["adopt", "A"]);
        suite
    }

    /// Installs the hooks alone: no account, no shard.
    pub fn install_hooks(home: &'home Home) -> Self {
        let suite = Self { home };
        suite.run("rungs", &["install"]);
        suite
    }

    /// Has the hooks come by a plugin, which the client itself installs, and adopts
    /// the home's login as the account `A`.
    pub fn install_plugin(home: &'home Home) -> Self {
        let suite = Self { home };
        suite.run("rungs", &["install", "--plugin"]);
        suite.add_plugin();
        suite.run("ccswitch", &["adopt", "A"]);
        suite
    }

    /// Adds the plugin that `rungs install` laid out, as a person would.
    pub fn add_plugin(&self) {
        let marketplace = self.prefix().join("plugin-marketplace");
        let marketplace = marketplace.to_str().unwrap();
        for arguments in [
            ["plugin", "marketplace", "add", marketplace].as_slice(),
            &["plugin", "install", "rungs@rungs"],
        ] {
            let output = self.home.run_claude(arguments, PATIENCE);
            assert_eq!(output.code, Some(0), "{arguments:?}: {output:?}");
        }
    }

    /// Where `rungs install` puts the programs.
    pub fn prefix(&self) -> PathBuf {
        self.home.path().join(".local/share/rungs")
    }

    /// A further account with a login of its own.
    pub fn add_account(&self, name: &str) {
        let store = self.root().join("accounts").join(name);
        fs_err::create_dir_all(&store).unwrap();
        make_private(&store);
        Login::new(name).write(&store);
    }

    /// Sets keys of the config.
    pub fn configure(&self, config: &Value) {
        let mut config = config.clone();
        config["format"] = json!(1);
        fs_err::write(self.root().join("config.json"), config.to_string()).unwrap();
    }

    /// One of the suite's tools, in the home's environment.
    pub fn command(&self, tool: &str) -> Command {
        self.home.command(executable(tool))
    }

    /// Runs one of the suite's tools; it must succeed.
    pub fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let output = self.command(tool).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{tool} {arguments:?}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// The state root.
    pub fn root(&self) -> PathBuf {
        self.home.path().join(".rungs")
    }

    /// The account that a shard points to.
    pub fn account_of(&self, shard: &str) -> String {
        let target = fs_err::read_link(self.root().join("shards").join(shard)).unwrap();
        target.file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// The flips so far.
    pub fn flips(&self) -> Vec<Value> {
        read_json_lines(&self.root().join("flips.jsonl"))
    }

    /// The session's lease, line by line.
    pub fn lease(&self, sid: &str) -> Vec<Value> {
        read_json_lines(&self.session(sid).join("lease.jsonl"))
    }

    /// The events of the session's lease, in order.
    pub fn events(&self, sid: &str) -> Vec<String> {
        let word = |line: &Value| line["event"].as_str().unwrap_or("?").to_owned();
        self.lease(sid).iter().map(word).collect()
    }

    /// Waits until the lease holds an event at least `count` times.
    pub fn wait_event(&self, sid: &str, event: &str, count: usize, patience: Duration) {
        let seen = || self.events(sid).iter().filter(|seen| *seen == event).count();
        let found = wait_for(patience, || (seen() >= count).then_some(()));
        assert!(
            found.is_some(),
            "no {count} × {event}: {:?}\n{}",
            self.events(sid),
            self.log(sid)
        );
    }

    /// The session's episodes, oldest first.
    pub fn episodes(&self, sid: &str) -> Vec<Value> {
        let Ok(entries) = fs_err::read_dir(self.session(sid).join("episodes")) else {
            return Vec::new();
        };
        let mut episodes: Vec<Value> = entries
            .flatten()
            .filter_map(|entry| read_json(&entry.path()))
            .collect();
        episodes.sort_by_key(|episode| episode["claimed_at"].as_i64());
        episodes
    }

    /// Waits until an episode has this outcome.
    pub fn wait_outcome(&self, sid: &str, outcome: &str, patience: Duration) -> Value {
        let found = wait_for(patience, || {
            self.episodes(sid)
                .into_iter()
                .find(|episode| episode["outcome"] == outcome)
        });
        found.unwrap_or_else(|| {
            panic!(
                "no episode {outcome}: {:?}\n{}",
                self.episodes(sid),
                self.log(sid)
            )
        })
    }

    /// Waits until an episode has this intent.
    pub fn wait_intent(&self, sid: &str, intent: &str, patience: Duration) -> Value {
        let found = wait_for(patience, || {
            self.episodes(sid)
                .into_iter()
                .find(|episode| episode["intent"] == intent)
        });
        found.unwrap_or_else(|| {
            panic!(
                "no episode to {intent}: {:?}\n{}",
                self.episodes(sid),
                self.log(sid)
            )
        })
    }

    /// The signal of a rung for a session, if one stands.
    pub fn signal(&self, sid: &str, rung: &str) -> Option<Value> {
        read_json(&self.root().join(format!("signals/{sid}.{rung}.json")))
    }

    /// `pool.json`.
    pub fn pool(&self) -> Value {
        read_json(&self.root().join("pool.json")).unwrap_or(Value::Null)
    }

    /// The session's debug log.
    pub fn log(&self, sid: &str) -> String {
        fs_err::read_to_string(self.session(sid).join("debug.log")).unwrap_or_default()
    }

    fn session(&self, sid: &str) -> PathBuf {
        self.root().join("session").join(sid)
    }
}
