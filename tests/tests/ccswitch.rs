//! The account tool, as a person uses it: adopt, login, list, and what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::assert::OutputAssertExt as _;
use predicates::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use tests::executables::executable;
use tests::files::{read_json, write_executable};
use tests::login::Login;

/// A home with a login of the account A.
struct Person {
    home: TempDir,
}

impl Person {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs_err::create_dir(home.path().join(".claude")).unwrap();
        Login::new("A").write(&home.path().join(".claude"));
        Self { home }
    }

    fn claude_dir(&self) -> PathBuf {
        self.home.path().join(".claude")
    }

    fn root(&self) -> PathBuf {
        self.home.path().join(".rungs")
    }

    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(executable(name));
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    fn ccswitch(&self, words: &[&str]) -> Output {
        self.tool("ccswitch").args(words).output().unwrap()
    }

    /// A stand-in for the client whose login does what `script` says.
    fn client(&self, script: &str) -> String {
        let path = self.home.path().join("stand-in");
        write_executable(&path, &format!("#!/bin/sh\n{script}\n"));
        path.display().to_string()
    }

    fn list(&self) -> Value {
        let output = self.ccswitch(&["list", "--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A refusal: exit code 1, one line on standard error that says this.
fn refused(output: Output, says: &str) {
    let says = predicate::str::contains(says).and(predicate::str::contains("\n").count(1));
    output.assert().code(1).stdout("").stderr(says);
}

#[test]
fn adopting_moves_nothing_and_points_the_client_at_the_shard() {
    let person = Person::new();
    let before = fs_err::read(person.claude_dir().join(".credentials.json")).unwrap();
    for _ in 0..2 {
        person.ccswitch(&["adopt", "main"]).assert().success();
    }
    let account = person.root().join("accounts/main");
    assert_eq!(
        fs_err::read_link(&account).unwrap(),
        fs_err::canonicalize(person.claude_dir()).unwrap()
    );
    assert_eq!(fs_err::read(account.join(".credentials.json")).unwrap(), before);
    let shard = person.root().join("shards/default");
    assert_eq!(fs_err::read_link(&shard).unwrap(), Path::new("../accounts/main"));
    let settings = read_json(&person.claude_dir().join("settings.json")).unwrap();
    assert_eq!(
        settings["env"]["CLAUDE_SECURESTORAGE_CONFIG_DIR"],
        shard.to_str().unwrap()
    );
    let list = person.list();
    assert_eq!(list["accounts"][0]["name"], "main");
    assert_eq!(list["accounts"][0]["usable"], true);
    assert_eq!(list["shards"][0]["account"], "main");

    person.tool("rungs").arg("uninstall").assert().success();
    assert!(
        !person.claude_dir().join("settings.json").exists(),
        "there was none before"
    );
}

#[test]
fn what_adopt_refuses() {
    let person = Person::new();
    refused(person.ccswitch(&["adopt", "a/b"]), "can't be an account's name");
    refused(
        person.ccswitch(&["adopt", "x.lock"]),
        "can't be an account's name",
    );
    person.ccswitch(&["adopt", "main"]).assert().success();
    refused(
        person.ccswitch(&["adopt", "other"]),
        "is already the account main",
    );

    let nobody = Person::new();
    fs_err::remove_file(nobody.claude_dir().join(".credentials.json")).unwrap();
    refused(nobody.ccswitch(&["adopt", "main"]), "holds no login");
    fs_err::write(
        nobody.claude_dir().join(".credentials.json"),
        "{\"claudeAiOauth\":{\"accessTok",
    )
    .unwrap();
    refused(nobody.ccswitch(&["adopt", "main"]), "can't be read");
    assert!(!nobody.root().exists(), "a refusal leaves nothing behind");
}

/// No session touches a credential: the changing verbs are a person's.
#[test]
fn a_session_changes_no_account() {
    let person = Person::new();
    for verb in ["adopt", "login"] {
        let mut command = person.tool("ccswitch");
        let output = command
            .args([verb, "main"])
            .env("CLAUDECODE", "1")
            .output()
            .unwrap();
        refused(output, &format!("ccswitch {verb} main"));
    }
    assert!(!person.root().exists());
}

/// The client's own login runs with a throw-away config folder and the new store
/// alone, or it would overwrite the login of the shard `default`.
#[test]
fn a_login_goes_into_a_store_of_its_own() {
    let person = Person::new();
    let made = person.home.path().join("made");
    Login::new("B").write(&made);
    let client = person.client(&format!(
        "[ \"$1 $2\" = 'auth login' ] || exit 9\n\
         [ -z \"$ANTHROPIC_API_KEY\" ] || exit 8\n\
         [ -d \"$CLAUDE_CONFIG_DIR\" ] && [ \"$CLAUDE_CONFIG_DIR\" != \"$HOME/.claude\" ] || exit 7\n\
         cp {}/.credentials.json \"$CLAUDE_SECURESTORAGE_CONFIG_DIR/\"",
        made.display()
    ));
    let mut login = person.tool("ccswitch");
    login
        .args(["login", "second", "--claude", &client])
        .env("ANTHROPIC_API_KEY", "sk-ant-FAKE");
    login
        .assert()
        .success()
        .stdout(predicate::str::contains("account second: logged in"));
    let store = person.root().join("accounts/second");
    assert!(store.join(".credentials.json").is_file());
    assert!(!fs_err::symlink_metadata(&store).unwrap().file_type().is_symlink());
    assert_eq!(person.list()["accounts"][0]["usable"], true);
}

#[test]
fn a_login_that_came_to_nothing_leaves_nothing() {
    let person = Person::new();
    let client = person.client("exit 3");
    refused(
        person.ccswitch(&["login", "second", "--claude", &client]),
        "left no login",
    );
    refused(
        person.ccswitch(&["login", "second", "--claude", "/nonexistent"]),
        "name the client with --claude",
    );
    assert!(!person.root().join("accounts/second").exists());
    person.ccswitch(&["adopt", "main"]).assert().success();
    refused(
        person.ccswitch(&["login", "main", "--claude", &client]),
        "use /login in a session",
    );
}

#[test]
fn usage_errors_are_2() {
    let person = Person::new();
    for words in [
        &["dance"][..],
        &["adopt"],
        &["login"],
        &["adopt", "a", "b"],
        &["list", "--xml"],
    ] {
        person.ccswitch(words).assert().code(2);
    }
}

/// A shard that points outside is named, and nothing follows it.
#[test]
fn a_shard_that_points_outside_is_told() {
    let person = Person::new();
    person.ccswitch(&["adopt", "main"]).assert().success();
    let shard = person.root().join("shards/default");
    fs_err::remove_file(&shard).unwrap();
    fs_err::os::unix::fs::symlink("/etc", &shard).unwrap();
    let list = person.list();
    assert!(
        list["shards"][0]["error"]
            .as_str()
            .unwrap()
            .contains("points outside the accounts"),
        "{list}"
    );
}
