//! `rungs install` and what belongs to it, from outside: U2 to U5, L8, L11.
//!
//! Each test has a home of its own. The programs to install are a copy of the
//! real `rungs` with stand-ins for the others beside it, since only their being
//! there matters here.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test's helpers fail the test"
)]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

const HOOKS: [&str; 4] = ["session-lease", "drive-gate", "walled-heal", "wedge-heal"];

struct Home {
    dir: tempfile::TempDir,
    built: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("home")).unwrap();
        // Linked, never written: a test that forks just then would hold the
        // program open for writing, and it could not be started.
        let built = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs_err::hard_link(program("rungs"), built.path().join("rungs")).unwrap();
        for name in HOOKS.into_iter().chain(["ccswitch"]) {
            symlink("/usr/bin/true", built.path().join(name)).unwrap();
        }
        Self { dir, built }
    }

    fn with_settings(text: &[u8]) -> Self {
        let home = Self::new();
        home.write(".claude/settings.json", text);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("home").join(name)
    }

    fn settings(&self) -> PathBuf {
        self.path(".claude/settings.json")
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs_err::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path(""))
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(self.path(""))
            .args(words);
        command
    }

    fn rungs(&self, words: &[&str]) -> Command {
        self.command(&self.built.path().join("rungs"), words)
    }

    fn install(&self) {
        self.rungs(&["install"]).assert().success();
    }

    fn uninstall(&self) {
        self.rungs(&["uninstall"]).assert().success();
    }

    /// Findings of doctor that are not "ok": check to what it says.
    fn findings(&self, words: &[&str], env: &[(&str, &str)]) -> BTreeMap<String, String> {
        let mut all = vec!["doctor", "--json", "--managed-settings"];
        let managed = self.path("managed.json");
        all.push(managed.to_str().unwrap());
        all.extend(words);
        let output = self.rungs(&all).envs(env.iter().copied()).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let wrong = report["wrong"].as_u64().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(wrong > 0)));
        let mut found = BTreeMap::new();
        for finding in report["findings"].as_array().unwrap() {
            let level = finding["level"].as_str().unwrap();
            assert_eq!(level != "ok", finding["fix"].is_string(), "{finding}");
            if level != "ok" {
                let text = format!("{level}: {}", finding["says"].as_str().unwrap());
                found.insert(finding["check"].as_str().unwrap().to_owned(), text);
            }
        }
        found
    }
}

/// An executable of the project, as built.
fn program(name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let path = folder.parent().unwrap().parent().unwrap().join(name);
    assert!(path.is_file(), "{} has not been built", path.display());
    path
}

/// Every path below a folder with what tells a change: content, mode, link.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(path) = todo.pop() {
        let meta = fs_err::symlink_metadata(&path).unwrap();
        let content = if meta.is_dir() {
            todo.extend(
                fs_err::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            Vec::new()
        } else if meta.is_symlink() {
            fs_err::read_link(&path)
                .unwrap()
                .to_string_lossy()
                .into_owned()
                .into_bytes()
        } else {
            fs_err::read(&path).unwrap()
        };
        all.insert(path, (meta.mode(), content));
    }
    all
}

const OTHERS: &str = "{\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [ {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]} ]\r\n\t}\r\n}";

#[test]
fn u3_uninstall_gives_back_the_identical_bytes() {
    for start in [
        "",
        "\n",
        "{}",
        "{ }\r\n",
        "{\"a\":1}",
        "\u{feff}{\n    \"hooks\": {},\n    \"env\": {}\n}\n\n",
        "{\"hooks\": {\"Stop\": []}}",
        OTHERS,
    ] {
        let home = Home::with_settings(start.as_bytes());
        fs_err::set_permissions(home.settings(), Permissions::from_mode(0o640)).unwrap();
        home.install();
        let installed = home.text(".claude/settings.json");
        assert_ne!(installed, start);
        let value: serde_json::Value =
            serde_json::from_str(installed.trim_start_matches('\u{feff}')).unwrap();
        let stop = value["hooks"]["StopFailure"][0]["hooks"].as_array().unwrap();
        assert_eq!(stop.len(), 2);
        for hook in stop {
            assert_eq!(
                (&hook["asyncRewake"], &hook["timeout"]),
                (&true.into(), &2_000_000.into())
            );
            assert_eq!(hook["args"][1].as_str(), home.path(".rungs").to_str());
            assert!(Path::new(hook["command"].as_str().unwrap()).is_file());
        }
        home.uninstall();
        assert_eq!(home.text(".claude/settings.json"), start, "{installed}");
        let mode = fs_err::metadata(home.settings()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(!home.path(".local/share/rungs").exists());
    }
}

#[test]
fn u3_a_file_that_was_not_there_is_gone_again() {
    let home = Home::new();
    home.install();
    assert!(home.settings().is_file());
    home.uninstall();
    assert!(!home.path(".claude").exists());
}

#[test]
fn what_the_client_would_not_read_is_refused_and_nothing_is_touched() {
    for (text, reason) in [
        ("{\n  // mine\n}", "line 2, column 3: a comment"),
        ("{\"a\": 1,}", "a trailing comma"),
        ("[]", "must be an object"),
        ("{\"hooks\": {\"Stop\": \"x\"}}", "/hooks/Stop must be an array"),
        ("{\"hooks\": {}, \"hooks\": {}}", "stands twice"),
    ] {
        let home = Home::with_settings(text.as_bytes());
        let before = snapshot(&home.path(""));
        home.rungs(&["install"])
            .assert()
            .code(1)
            .stderr(contains(reason).and(predicate::function(|text: &str| text.lines().count() == 1)));
        assert_eq!(snapshot(&home.path("")), before);
    }
}

#[test]
fn a_second_install_changes_nothing() {
    let home = Home::with_settings(OTHERS.as_bytes());
    home.install();
    let before = snapshot(&home.path(""));
    let inode = fs_err::metadata(home.settings()).unwrap().ino();
    home.rungs(&["install"])
        .assert()
        .success()
        .stdout(contains("0 of 6 programs were new").and(contains("is left as it is")));
    assert_eq!(snapshot(&home.path("")), before);
    assert_eq!(fs_err::metadata(home.settings()).unwrap().ino(), inode);
}

#[test]
fn u5_an_upgrade_replaces_older_entries_and_programs_whole() {
    let home = Home::with_settings(OTHERS.as_bytes());
    home.rungs(&["install", "--prefix", "older"]).assert().success();
    let older = home.path("older/bin/drive-gate");
    let running = fs_err::File::open(&older).unwrap();
    let newer = home.built.path().join("drive-gate");
    fs_err::remove_file(&newer).unwrap();
    symlink("/usr/bin/false", newer).unwrap();
    home.rungs(&["install", "--prefix", "older"]).assert().success();
    assert_ne!(
        running.metadata().unwrap().ino(),
        fs_err::metadata(&older).unwrap().ino()
    );

    // Without a prefix it stays where it is; with another one it moves there.
    home.rungs(&["install"]).assert().success();
    assert_eq!(home.findings(&[], &[]).len(), 1);
    assert!(!home.path(BIN).exists());
    home.rungs(&["install", "--prefix", ".local/share/rungs"])
        .assert()
        .success();
    assert!(!home.path("older").exists());
    assert_eq!(home.findings(&[], &[]).len(), 1);
    let text = home.text(".claude/settings.json");
    assert!(!text.contains("older/bin"), "{text}");
    assert_eq!(text.matches("walled-heal").count(), 1);
    home.uninstall();
    assert_eq!(home.text(".claude/settings.json"), OTHERS);
}

#[test]
fn the_users_edits_in_between_stay() {
    let home = Home::with_settings(OTHERS.as_bytes());
    home.install();
    let edited = home.text(".claude/settings.json").replace("opus", "sonnet");
    home.write(".claude/settings.json", edited.as_bytes());
    home.rungs(&["uninstall"])
        .assert()
        .success()
        .stdout(contains("what was changed since"));
    assert_eq!(
        home.text(".claude/settings.json"),
        OTHERS.replace("opus", "sonnet")
    );
    // The content before the install is kept where it did not come back.
    assert_eq!(home.text(".rungs/backup/settings.1.json"), OTHERS);
}

#[test]
fn the_shard_entry_inside_our_root_is_taken_back_and_said() {
    let home = Home::with_settings(b"{\"env\": {\"A\": \"b\"}}");
    home.install();
    let shard = format!(
        "{{\"CLAUDE_SECURESTORAGE_CONFIG_DIR\": \"{}\", \"A\"",
        home.path(".rungs/shards/default").display()
    );
    let edited = home.text(".claude/settings.json").replace("{\"A\"", &shard);
    home.write(".claude/settings.json", edited.as_bytes());
    home.rungs(&["uninstall"])
        .assert()
        .success()
        .stdout(contains("CLAUDE_SECURESTORAGE_CONFIG_DIR is taken out"));
    assert_eq!(home.text(".claude/settings.json"), "{\"env\": {\"A\": \"b\"}}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = Home::with_settings(OTHERS.as_bytes());
    let before = snapshot(&home.path(""));
    home.rungs(&["install", "--dry-run"])
        .assert()
        .success()
        .stdout(contains("would be changed").and(contains("asyncRewake")));
    assert_eq!(snapshot(&home.path("")), before);
    home.install();
    let before = snapshot(&home.path(""));
    home.rungs(&["uninstall", "--dry-run"])
        .assert()
        .success()
        .stdout(contains("8 hooks taken out"));
    assert_eq!(snapshot(&home.path("")), before);
}

#[test]
fn the_printed_way_back_works_as_it_stands() {
    let home = Home::with_settings(OTHERS.as_bytes());
    let words = ["install", "--root", "it's mine/r", "--prefix", "my own"];
    let output = home.rungs(&words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let back = text
        .lines()
        .find_map(|line| line.strip_prefix("To take it back: "));
    home.command(Path::new("/bin/sh"), &["-c", back.unwrap()])
        .assert()
        .success();
    assert_eq!(home.text(".claude/settings.json"), OTHERS);
    assert!(!home.path("my own").exists());
}

#[test]
fn a_link_stays_a_link() {
    let home = Home::new();
    home.write("dotfiles/claude.json", OTHERS.as_bytes());
    fs_err::create_dir(home.path(".claude")).unwrap();
    symlink("../dotfiles/claude.json", home.settings()).unwrap();
    home.install();
    assert!(home.text("dotfiles/claude.json").contains("walled-heal"));
    assert!(fs_err::symlink_metadata(home.settings()).unwrap().is_symlink());
    home.uninstall();
    assert!(fs_err::symlink_metadata(home.settings()).unwrap().is_symlink());
    assert_eq!(home.text("dotfiles/claude.json"), OTHERS);
}

#[test]
fn places_that_would_break_it_are_refused_with_a_way_out() {
    let home = Home::with_settings(OTHERS.as_bytes());
    fs_err::create_dir_all(home.path("repo/.git")).unwrap();
    let refused = |words: &[&str], reason: &str| {
        home.rungs(&[&["install"], words].concat())
            .assert()
            .code(1)
            .stderr(contains(reason));
        assert!(!home.path(".rungs").exists());
    };
    refused(&["--prefix", "repo/x/y"], "choose another with --prefix");
    refused(&["--root", ".claude/rungs"], "choose another with --root");
    refused(
        &["--root", "x/../.claude/jobs/rungs"],
        "choose another with --root",
    );
    fs_err::set_permissions(home.settings(), Permissions::from_mode(0o444)).unwrap();
    refused(&[], "is read-only");
    fs_err::remove_file(home.settings()).unwrap();
    symlink("nowhere", home.settings()).unwrap();
    refused(&[], "a link to a missing file");
    fs_err::remove_file(home.built.path().join("wedge-heal")).unwrap();
    refused(&[], "wedge-heal is missing");
    home.rungs(&["install", "--nonsense"]).assert().code(2);
}

#[test]
fn u3_the_plugin_is_copies_outside_any_repository() {
    let home = Home::with_settings(OTHERS.as_bytes());
    home.install();
    home.rungs(&["install", "--plugin"])
        .assert()
        .success()
        .stdout(contains("claude plugin install rungs@rungs"));
    assert_eq!(home.text(".claude/settings.json"), OTHERS);
    let plugin = ".local/share/rungs/plugin-marketplace/plugins/rungs";
    let hooks = home.text(&format!("{plugin}/hooks/hooks.json"));
    let value: serde_json::Value = serde_json::from_str(&hooks).unwrap();
    for name in HOOKS {
        assert!(hooks.contains(&format!("${{CLAUDE_PLUGIN_ROOT}}/bin/{name}")));
        assert!(home.path(&format!("{plugin}/bin/{name}")).is_file());
    }
    assert_eq!(value["hooks"]["Stop"][0]["hooks"].as_array().unwrap().len(), 2);

    // As the client leaves the file: written anew, in an order of its own.
    let enabled = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]},\"enabledPlugins\":{\"rungs@rungs\":true},\"model\":\"opus\"}";
    home.write(".claude/settings.json", enabled.as_bytes());
    for verb in ["install", "uninstall"] {
        home.rungs(&[verb])
            .assert()
            .code(1)
            .stderr(contains("claude plugin uninstall rungs@rungs"));
    }
    home.write(
        ".claude/settings.json",
        enabled.replace("\"rungs@rungs\":true", "").as_bytes(),
    );
    home.uninstall();
    assert_eq!(home.text(".claude/settings.json"), OTHERS);
    assert!(!home.path(".local/share/rungs").exists());
}

#[test]
fn off_and_on_are_one_file() {
    let home = Home::new();
    home.rungs(&["on"])
        .assert()
        .success()
        .stdout(contains("on already"));
    assert!(!home.path(".rungs").exists());
    home.rungs(&["off"]).assert().success();
    assert!(home.path(".rungs/off").is_file());
    home.rungs(&["off"])
        .assert()
        .success()
        .stdout(contains("off already"));
    home.rungs(&["status"])
        .assert()
        .success()
        .stdout(contains("Switched OFF"));
    home.rungs(&["on"]).assert().success();
    assert!(!home.path(".rungs/off").exists());
}

#[test]
fn doctor_is_content_with_a_plain_install() {
    let home = Home::new();
    home.install();
    let found = home.findings(&[], &[]);
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), ["client"]);
    assert!(found["client"].starts_with("not looked: no claude on the PATH"));
}

#[test]
fn doctor_finds_what_fails_silently() {
    type Break = fn(&Home);
    let cases: [(&str, &str, Break); 19] = [
        ("installed once", "no hook of ours", |home| home.uninstall()),
        ("hook programs", "missing or not executable", |home| {
            fs_err::remove_file(home.path(BIN).join("wedge-heal")).unwrap();
        }),
        ("hook programs", "missing or not executable", |home| {
            let path = home.path(BIN).join("drive-gate");
            fs_err::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }),
        ("registration", "other hooks of ours", |home| {
            edit(home, "\"timeout\": 10", "\"timeout\": 1");
        }),
        ("hooks enabled", "disableAllHooks", |home| {
            edit(home, "{\n", "{\n  \"disableAllHooks\": true,\n");
        }),
        ("hooks enabled", "disableAllHooks", |home| {
            home.write("managed.json", b"{\"disableAllHooks\": true}");
        }),
        ("hooks enabled", "allowManagedHooksOnly", |home| {
            home.write("managed.json", b"{\"allowManagedHooksOnly\": true}");
        }),
        ("installed once", "and the plugin", |home| {
            edit(home, "{\n", "{\n  \"enabledPlugins\": {\"rungs@rungs\": true},\n");
        }),
        ("settings", "a comment", |home| edit(home, "{\n", "{ // mine\n")),
        ("settings", "a trailing comma", |home| {
            home.write("project/.claude/settings.local.json", b"{\"a\": 1,}");
        }),
        ("retry watchdog", "settings.json", |home| {
            edit(
                home,
                "{\n",
                "{\n  \"env\": {\"CLAUDE_CODE_RETRY_WATCHDOG\": \"1\"},\n",
            );
        }),
        ("stores in charge", "apiKeyHelper", |home| {
            home.write("project/.claude/settings.json", b"{\"apiKeyHelper\": \"x\"}");
        }),
        ("shard variable", "outranks", |home| {
            let text = b"{\"env\": {\"CLAUDE_SECURESTORAGE_CONFIG_DIR\": \"/x\"}}";
            home.write("project/.claude/settings.json", text);
        }),
        ("shard variable", "which is not in", |home| {
            edit(
                home,
                "{\n",
                "{\n  \"env\": {\"CLAUDE_SECURESTORAGE_CONFIG_DIR\": \"/x\"},\n",
            );
        }),
        ("state root", "others can look in", |home| {
            fs_err::set_permissions(home.path(".rungs"), Permissions::from_mode(0o755)).unwrap();
        }),
        ("config", "not understood", |home| {
            home.write(".rungs/config.json", b"{");
        }),
        ("switch", "no hook acts", |home| home.write(".rungs/off", b"")),
        ("client", "is 2.1.78; hooks with args need 2.1.139", |home| {
            fs_err::create_dir(home.path("bin")).unwrap();
            let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("fakes/old-claude");
            symlink(old, home.path("bin/claude")).unwrap();
        }),
        ("outside git", "git working tree", |home| {
            fs_err::create_dir(home.path(".local/.git")).unwrap();
        }),
    ];
    for (check, says, break_it) in cases {
        let home = Home::new();
        home.install();
        break_it(&home);
        let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
        let found = home.findings(&["--project", "project"], &[("PATH", &path)]);
        let text = found
            .get(check)
            .unwrap_or_else(|| panic!("{check} {says}: {found:?}"));
        assert!(
            text.starts_with("wrong") && text.contains(says),
            "{check}: {text}"
        );
    }
}

const BIN: &str = ".local/share/rungs/bin";

fn edit(home: &Home, from: &str, to: &str) {
    let text = home.text(".claude/settings.json");
    assert!(text.contains(from), "{text}");
    home.write(".claude/settings.json", text.replacen(from, to, 1).as_bytes());
}

#[test]
fn doctor_sees_the_environment_and_prints_no_secret() {
    let home = Home::new();
    home.install();
    for (check, name) in [
        ("retry watchdog", "CLAUDE_CODE_RETRY_WATCHDOG"),
        ("stores in charge", "ANTHROPIC_API_KEY"),
        ("stores in charge", "ANTHROPIC_AUTH_TOKEN"),
        ("stores in charge", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("shard variable", "CLAUDE_SECURESTORAGE_CONFIG_DIR"),
    ] {
        let found = home.findings(&[], &[(name, "made-up-secret")]);
        assert!(
            found[check].starts_with("wrong") && found[check].contains(name),
            "{found:?}"
        );
        assert!(!format!("{found:?}").contains("made-up-secret"), "{found:?}");
    }
}

#[test]
fn l11_what_could_not_be_read_is_not_ok() {
    let home = Home::new();
    home.install();
    home.write("managed.json", b"{\"a\": 1,}");
    let found = home.findings(&[], &[]);
    for check in [
        "hooks enabled",
        "retry watchdog",
        "stores in charge",
        "shard variable",
    ] {
        assert!(
            found[check].starts_with("not looked: unreadable: managed"),
            "{found:?}"
        );
    }
    assert!(found["settings"].starts_with("wrong"));
}

#[test]
fn u4_doctor_says_merge_first_and_never_check_out() {
    let home = Home::new();
    home.install();
    let git = |words: &[&str]| {
        home.command(Path::new("/usr/bin/git"), words)
            .current_dir(home.path(".claude"))
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@b")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@b")
            .assert()
            .success();
    };
    let says = || {
        let output = home.rungs(&["doctor"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            !text.contains("git checkout ") || text.contains("is no git checkout"),
            "{text}"
        );
        home.findings(&[], &[]).remove("client folder's checkout")
    };
    assert_eq!(says(), None);
    git(&["init", "--initial-branch=main"]);
    git(&["add", "settings.json"]);
    git(&["commit", "-m", "a"]);
    assert_eq!(says(), None, "clean, on main");
    let with_newline = home.text(".claude/settings.json") + "\n";
    home.write(".claude/settings.json", with_newline.as_bytes());
    assert!(says().unwrap().contains("has 1 changed tracked files"));
    git(&["switch", "-c", "mine"]);
    git(&["commit", "-a", "-m", "b"]);
    assert!(says().unwrap().contains("is on mine, not main"));
    // Main goes another way: diverged from what it tracks.
    git(&["branch", "upstream", "main"]);
    git(&["switch", "upstream"]);
    git(&["commit", "--allow-empty", "-m", "c"]);
    git(&["branch", "--force", "main", "mine"]);
    git(&["switch", "main"]);
    git(&["branch", "--set-upstream-to=upstream"]);
    assert!(
        says()
            .unwrap()
            .contains("has diverged: 1 commits of its own, 1 missing")
    );
    home.rungs(&["doctor"])
        .assert()
        .code(1)
        .stdout(contains("fix: merge first"));
}

const SID: &str = "42c4d508-4d22-47e5-b86c-6edb7aab8318";

fn with_a_session() -> Home {
    let home = Home::new();
    let at = 1_796_070_000_000_i64;
    let session = format!(".rungs/session/{SID}");
    home.write(
        &format!("{session}/lease.jsonl"),
        format!("{{\"format\":1,\"at\":{at},\"event\":\"start\",\"host\":{{\"pid\":7,\"cwd\":\"/p\\u001b[31m\"}}}}\ngarbage\n").as_bytes(),
    );
    home.write(
        &format!("{session}/episodes/p1"),
        format!("{{\"format\":1,\"actor\":\"walled-heal\",\"claimed_at\":{at},\"error\":\"rate_limit\",\"verdict\":\"walled\",\"intent\":\"park\",\"why\":\"no account is free\"}}").as_bytes(),
    );
    home.write(&format!("{session}/episodes/p2"), b"{\"format\":9}");
    home.write(
        &format!("{session}/debug.log"),
        b"2026-11-30T20:00:00Z drive-gate allowed: no goal\n",
    );
    home.write(
        &format!("{session}/wall.json"),
        b"{\"format\":1,\"window\":\"five_hour\"}",
    );
    home.write(
        &format!(".rungs/signals/{SID}.walled-heal.json"),
        format!("{{\"format\":1,\"sid\":\"{SID}\",\"rung\":\"walled-heal\",\"state\":\"parked\",\"why\":\"all walled\",\"person\":\"wait\"}}").as_bytes(),
    );
    home.write(".rungs/signals/torn.wedge-heal.json", b"{");
    home.write(
        ".rungs/flips.jsonl",
        format!("{{\"format\":1,\"at\":{at},\"shard\":\"default\",\"from\":\"a\",\"to\":\"b\",\"cause\":\"wall\",\"sid\":\"{SID}\"}}\n").as_bytes(),
    );
    for name in [".rungs", ".rungs/session", ".rungs/signals"] {
        fs_err::set_permissions(home.path(name), Permissions::from_mode(0o700)).unwrap();
    }
    home
}

#[test]
fn l11_status_says_what_was_seen_and_what_could_not_be_read() {
    let home = with_a_session();
    home.rungs(&["status"]).assert().success().stdout(
        contains("PARKED")
            .and(contains("no account is free"))
            .and(contains("SIGNAL"))
            .and(contains(
                "1 sessions seen, 1 parked, 0 walls, 1 signals; 3 things could not be read.",
            ))
            .and(contains("not read: signals/torn.wedge-heal.json"))
            .and(contains("\u{1b}").not()),
    );
    let output = home.rungs(&["status", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["sessions"][0]["sid"], SID);
    assert_eq!(status["sessions"][0]["parked"], true);
    assert_eq!(status["not_read"].as_array().unwrap().len(), 3);
    // No root: nothing was looked at, which is not "no sessions".
    let empty = Home::new();
    empty
        .rungs(&["status"])
        .assert()
        .success()
        .stdout(contains("nothing was looked at"));
    assert!(!empty.path(".rungs").exists());
}

#[test]
fn log_tells_what_was_done_what_not_and_why() {
    let home = with_a_session();
    for wanted in [SID, "42c4"] {
        home.rungs(&["log", wanted]).assert().success().stdout(
            contains("drive-gate allowed: no goal")
                .and(contains("no account is free"))
                .and(contains("no outcome yet"))
                .and(contains("shard default from a to b (wall)"))
                .and(contains("five_hour"))
                .and(contains("all walled"))
                .and(contains("2026-11-30T20:20:00.000Z start"))
                .and(contains("Could not be read: 1 lines of"))
                .and(contains("Could not be read: 1 episodes")),
        );
    }
    home.write(".rungs/session/42c4d508-other/debug.log", b"x\n");
    for (bad, reason) in [
        ("../etc", "no session id"),
        ("", "no session id"),
        ("ffff", "no session ffff was seen"),
        ("42c4", "fits several sessions"),
    ] {
        home.rungs(&["log", bad])
            .assert()
            .code(1)
            .stderr(contains(reason).and(predicate::function(|text: &str| text.lines().count() == 1)));
    }
}

#[test]
fn try_tells_when_a_hook_does_not_do_its_job_and_leaves_nothing() {
    let home = Home::new();
    let before = snapshot(home.dir.path());
    home.rungs(&["try"])
        .assert()
        .code(1)
        .stdout(contains("FAILED: walled-heal").and(contains("FAILED: wedge-heal")));
    assert_eq!(snapshot(home.dir.path()), before);
}

#[test]
fn install_sh_without_cargo_says_so_and_changes_nothing() {
    let home = Home::new();
    let before = snapshot(&home.path(""));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../install.sh");
    // dirname is all it needs before it looks for cargo.
    let tools = home.dir.path().join("tools");
    fs_err::create_dir(&tools).unwrap();
    symlink("/usr/bin/dirname", tools.join("dirname")).unwrap();
    for words in [&["--try"][..], &[]] {
        home.command(Path::new("/bin/sh"), &[script.to_str().unwrap()])
            .args(words)
            .env("PATH", &tools)
            .assert()
            .code(1)
            .stderr(contains("cargo is missing"));
    }
    assert_eq!(snapshot(&home.path("")), before);
}

#[test]
fn the_default_config_is_what_the_programs_take_for_missing() {
    let text = include_str!("../../settings/config.json");
    let config: shared::edge::config::Config = serde_json::from_str(text).unwrap();
    assert_eq!(config, shared::edge::config::Config::default());
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let written: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(keys(&written), keys(&serde_json::to_value(config).unwrap()));
    let readme = include_str!("../../settings/README.md");
    for key in keys(&written) {
        assert!(
            readme.contains(&format!("`{key}`")),
            "settings/README.md does not explain {key}"
        );
    }
}

#[test]
fn l8_every_package_has_a_row_in_systems_md() {
    let table = include_str!("../../settings/SYSTEMS.md");
    for room in ["hooks", "fleet"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(room);
        for entry in fs_err::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let rows = table
                .lines()
                .filter(|line| line.starts_with(&format!("| {name} |")));
            assert_eq!(rows.count(), 1, "{name}");
        }
    }
}
