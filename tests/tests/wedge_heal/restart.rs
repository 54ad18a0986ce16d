//! Restarts in a real tmux on a socket of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use shared::edge::proc::{self, Liveness, ProcessId};

use tests::executables::executable;

use crate::stage::{SID, Stage, assert_silent, wait_until};

const TOO_LONG: &str = "Prompt is too long";

/// How the stand-in is started in its pane.
#[derive(Clone, Copy, PartialEq)]
enum Pane {
    Shell,
    Client,
}

struct Terminal<'a> {
    stage: &'a Stage,
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        // A stand-in outlives the terminal as the client would not.
        for pid in registered(self.stage) {
            if let Some(pid) = Pid::from_raw(pid) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}

impl<'a> Terminal<'a> {
    /// Starts the stand-in with these arguments and waits until it is registered.
    fn start(stage: &'a Stage, pane: Pane, environment: &str, arguments: &str) -> (Self, i32) {
        let program = stage.path().join("claude.sh");
        std::fs::write(&program, include_str!("claude.sh")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        stage.write_failed_turn("invalid_request", TOO_LONG);
        let terminal = Self { stage };
        let line = format!(
            "{environment} {} --session-id {SID} {arguments}",
            program.display()
        );
        let new = ["new-session", "-d", "-s", "main", "-x", "200", "-y", "50"];
        match pane {
            Pane::Client => drop(terminal.tmux(&[&new[..], &[&format!("exec env {line}")]].concat())),
            Pane::Shell => {
                terminal.tmux(&[&new[..], &["PS1='ready> ' exec bash --norc --noprofile"]].concat());
                assert!(wait_until(|| terminal.screen().contains("ready>")));
                terminal.tmux(&["send-keys", "-t", "main", "-l", &line]);
                terminal.tmux(&["send-keys", "-t", "main", "Enter"]);
            }
        }
        assert!(
            wait_until(|| registered(stage).len() == 1),
            "{}",
            terminal.screen()
        );
        let pid = registered(stage)[0];
        (terminal, pid)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.stage.path().join("tmux"))
            .args(["-f", "/dev/null"])
            .args(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.stage.path())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("CLAUDE_CONFIG_DIR", self.stage.claude())
            .env("IMPOSTOR_LOG", self.log_path())
            .current_dir(self.stage.path().join("project"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log_path(&self) -> PathBuf {
        self.stage.path().join("impostor.log")
    }

    fn starts(&self) -> Vec<String> {
        let log = std::fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        log.split("start ").skip(1).map(str::to_owned).collect()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "main"])
    }
}

/// The live processes that are registered.
fn registered(stage: &Stage) -> Vec<i32> {
    let entries = std::fs::read_dir(stage.claude().join("sessions")).unwrap();
    let pids = entries.filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().ok()?;
        name.strip_suffix(".json")?.parse().ok()
    });
    pids.filter(|pid| ProcessId::of(*pid).is_some_and(|process| process.liveness() == Liveness::Alive))
        .collect()
}

fn helpers(stage: &Stage) -> Vec<i32> {
    let root = stage.root().into_os_string();
    let is_helper = |pid: &i32| {
        let argv = proc::argv(*pid).unwrap_or_default();
        argv.contains(&root) && argv.iter().any(|word| word == "--restart")
    };
    proc::all_pids().unwrap().into_iter().filter(is_helper).collect()
}

/// Kills the helper and waits until it is gone, its lock with it.
fn kill_helpers(stage: &Stage) {
    for helper in helpers(stage) {
        kill_process(Pid::from_raw(helper).unwrap(), Signal::KILL).ok();
    }
    assert!(wait_until(|| helpers(stage).is_empty()));
}

fn outcome(stage: &Stage) -> Value {
    assert!(
        wait_until(|| stage.intent()["outcome"].is_string()),
        "no outcome: {}\n{}",
        stage.intent(),
        stage.log()
    );
    stage.intent()["outcome"].clone()
}

/// The turn's failure, told to a hook that is installed twice.
fn fail(stage: &Stage, pid: i32) {
    let payload = stage.payload("invalid_request", TOO_LONG);
    let both = [0, 1].map(|_| stage.start(pid.cast_unsigned(), &payload));
    for hook in both {
        assert_silent(&hook.wait_with_output().unwrap());
    }
}

#[test]
fn a_session_typed_into_a_shell_comes_back_as_itself() {
    let stage = Stage::new();
    let odd = r#"--add-dir /tmp "/var/a b" --append-system-prompt $'it\'s\n\xff \\ done' 'the first prompt'"#;
    let (terminal, old) = Terminal::start(&stage, Pane::Shell, "ONLY_HERE=1", odd);
    fail(&stage, old);
    assert_eq!(
        outcome(&stage),
        "restarted",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    let new = registered(&stage);
    assert_eq!(new.len(), 1, "one live process");
    assert_ne!(new[0], old);
    // The same options, byte for byte; the session is named once and a prompt
    // of ours stands in the place of the first one.
    let old_words = argv_of(&terminal, 0);
    let new_words = proc::argv(new[0]).unwrap();
    let shown: Vec<_> = new_words.iter().map(|word| word.to_string_lossy()).collect();
    assert!(
        shown.windows(2).any(|pair| pair == ["--resume", SID]),
        "{shown:?}"
    );
    assert!(shown.last().unwrap().starts_with("rungs: "), "{shown:?}");
    assert!(
        !shown
            .iter()
            .any(|word| word == "the first prompt" || word == "--session-id")
    );
    let odd_word = b"it's\n\xff \\ done";
    assert!(
        new_words.iter().any(|word| word.as_encoded_bytes() == odd_word),
        "{shown:?}"
    );
    assert!(old_words.contains("[/var/a b]") && argv_of(&terminal, 1).contains("[/var/a b]"));
    assert_eq!(stage.episode()["outcome"], "restarted");
    assert!(stage.signal().is_null());
    let spent = stage.json(&format!("session/{SID}/wedge.json"));
    assert_eq!(spent["restarts"].as_array().map(Vec::len), Some(1));
    assert!(wait_until(|| helpers(&stage).is_empty()), "the helper ended");

    // The same failure again: no second restart, a signal.
    let mut payload = stage.payload("invalid_request", TOO_LONG);
    payload["prompt_id"] = json!("second");
    assert_silent(&stage.run(new[0].cast_unsigned(), &payload));
    assert_eq!(stage.signal()["state"], "needs-person");
    assert_eq!(registered(&stage), new);
}

fn argv_of(terminal: &Terminal, number: usize) -> String {
    terminal.starts()[number].clone()
}

#[test]
fn a_session_that_is_the_panes_own_command_comes_back_with_its_environment() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Client, "ONLY_HERE=a-secret", "--model opus");
    assert_eq!(
        terminal
            .tmux(&["display-message", "-p", "-t", "main", "#{pane_pid}"])
            .trim(),
        old.to_string()
    );
    fail(&stage, old);
    assert_eq!(
        outcome(&stage),
        "restarted",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    let new = registered(&stage);
    assert_eq!(new.len(), 1);
    assert_eq!(
        terminal
            .tmux(&["display-message", "-p", "-t", "main", "#{pane_pid}"])
            .trim(),
        new[0].to_string(),
        "it is the pane's own command again"
    );
    let second = argv_of(&terminal, 1);
    assert!(
        second.contains("only-here=a-secret") && second.contains("[--model] [opus]"),
        "{second}"
    );
    let remain = terminal.tmux(&["show-options", "-p", "-t", "main", "remain-on-exit"]);
    assert_eq!(remain, "", "the pane's own option is given back");
    assert!(!stage.root().join(format!("session/{SID}/restart.pipe")).exists());
    for file in ["restart.json", "debug.log"] {
        let text = std::fs::read_to_string(stage.root().join(format!("session/{SID}/{file}"))).unwrap();
        assert!(!text.contains("a-secret"), "{file} holds the environment");
    }
}

#[test]
fn half_typed_text_vetoes_the_restart() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Shell, "IMPOSTOR_COMPOSER='fix the te'", "");
    fail(&stage, old);
    assert_eq!(
        outcome(&stage),
        "vetoed",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    assert_eq!(registered(&stage), [old]);
    assert!(stage.signal()["why"].as_str().unwrap().contains("composer"));
    let spent = stage.json(&format!("session/{SID}/wedge.json"));
    assert!(
        spent["restarts"].is_null(),
        "nothing was done, nothing is counted: {spent}"
    );
}

#[test]
fn a_login_being_refreshed_is_waited_for() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Client, "A=1", "");
    let lock = stage.claude().join(".oauth_refresh.lock");
    std::fs::create_dir(&lock).unwrap();
    fail(&stage, old);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(registered(&stage), [old]);
    assert!(stage.intent()["outcome"].is_null());
    std::fs::remove_dir(&lock).unwrap();
    assert_eq!(
        outcome(&stage),
        "restarted",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    assert_eq!(registered(&stage).len(), 1);
}

#[test]
fn a_helper_that_dies_leaves_an_intent_that_is_finished_and_never_two_processes() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Shell, "IMPOSTOR_ENDS_IN_S=2", "--model opus");
    fail(&stage, old);
    assert!(
        wait_until(|| stage.intent()["step"] == "ending"),
        "{}",
        stage.log()
    );
    kill_helpers(&stage);
    // Longer than the process takes to end, if it was asked to.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(terminal.starts().len(), 1, "nobody started a second one");
    assert!(stage.intent()["outcome"].is_null());

    // Two at once finish it: one new process.
    let mut both = [finish(&stage), finish(&stage)];
    for helper in &mut both {
        helper.wait().unwrap();
    }
    assert_eq!(
        outcome(&stage),
        "restarted",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    assert_eq!(registered(&stage).len(), 1);
    assert_eq!(terminal.starts().len(), 2);
}

/// Starts a helper for the intent that is there.
fn finish(stage: &Stage) -> std::process::Child {
    Command::new(executable("wedge-heal"))
        .arg("--root")
        .arg(stage.root())
        .args(["--restart", &format!("session/{SID}/restart.json")])
        .env_clear()
        .env("HOME", stage.path())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .spawn()
        .unwrap()
}

/// The helper is killed at one moment after another; whatever step it had
/// reached, a second one ends with one process, or with none and a signal.
#[test]
fn whenever_a_helper_dies_there_are_never_two_processes() {
    for (number, after_ms) in [0, 30, 60, 90, 120, 160, 220, 400].into_iter().enumerate() {
        let pane = [Pane::Shell, Pane::Client][number % 2];
        let stage = Stage::new();
        let (terminal, old) = Terminal::start(&stage, pane, "A=1", "");
        fail(&stage, old);
        std::thread::sleep(std::time::Duration::from_millis(after_ms));
        kill_helpers(&stage);
        let at = stage.intent()["step"].clone();
        // As if the machine's minute had passed.
        std::fs::remove_file(stage.root().join("machine-restarts.json")).ok();
        finish(&stage).wait().unwrap();
        let outcome = outcome(&stage);
        let story = format!(
            "{after_ms} ms, {at}: {outcome}\n{}\n{}",
            stage.log(),
            terminal.screen()
        );
        assert!(terminal.starts().len() <= 2, "{story}");
        match outcome.as_str().unwrap() {
            "restarted" => assert_eq!(registered(&stage).len(), 1, "{story}"),
            "failed" => {
                assert!(registered(&stage).is_empty(), "{story}");
                assert_eq!(stage.signal()["state"], "needs-person", "{story}");
            }
            _ => panic!("{story}"),
        }
    }
}

#[test]
fn a_session_at_work_is_not_restarted() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Client, "A=1", "");
    std::fs::create_dir(stage.claude().join(".oauth_refresh.lock")).unwrap();
    fail(&stage, old);
    assert!(wait_until(|| helpers(&stage).len() == 1));
    // A turn begins while the helper still waits for its moment.
    let path = stage.claude().join(format!("sessions/{old}.json"));
    let busy = json!({"sessionId":SID,"status":"busy","statusUpdatedAt":crate::stage::now_ms()});
    std::fs::write(path, busy.to_string()).unwrap();
    assert_eq!(outcome(&stage), "stale", "{}\n{}", stage.log(), terminal.screen());
    assert_eq!(registered(&stage), [old]);
    assert!(
        stage.signal().is_null(),
        "somebody is at work there: nobody has to be told"
    );
}

/// The helper died after it had recorded that it ends the process and before it
/// asked; then a turn began. Nothing is ended on the strength of an old record.
#[test]
fn an_old_intent_ends_no_session_that_is_at_work_again() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Client, "A=1", "");
    std::fs::create_dir(stage.claude().join(".oauth_refresh.lock")).unwrap();
    fail(&stage, old);
    assert!(wait_until(|| helpers(&stage).len() == 1));
    kill_helpers(&stage);
    let mut intent = stage.intent();
    intent["step"] = json!("ending");
    stage.state(&format!("session/{SID}/restart.json"), &intent.to_string());
    let path = stage.claude().join(format!("sessions/{old}.json"));
    let busy = json!({"sessionId":SID,"status":"busy","statusUpdatedAt":crate::stage::now_ms()});
    std::fs::write(path, busy.to_string()).unwrap();
    finish(&stage).wait().unwrap();
    assert_eq!(outcome(&stage), "stale", "{}\n{}", stage.log(), terminal.screen());
    assert_eq!(registered(&stage), [old]);
    let remain = terminal.tmux(&["show-options", "-p", "-t", "main", "remain-on-exit"]);
    assert_eq!(remain, "", "the pane's own option is given back");
}

#[test]
fn a_second_process_on_the_session_vetoes_the_restart() {
    let stage = Stage::new();
    let (terminal, old) = Terminal::start(&stage, Pane::Client, "A=1", "");
    let twin = stage.idle_client();
    fail(&stage, old);
    assert_eq!(
        outcome(&stage),
        "vetoed",
        "{}\n{}",
        stage.log(),
        terminal.screen()
    );
    let mut alive = registered(&stage);
    alive.sort_unstable();
    let mut both = [old, twin.0.id().cast_signed()];
    both.sort_unstable();
    assert_eq!(alive, both);
}

#[test]
fn a_helper_that_dies_before_the_act_is_rolled_back_by_the_next_hook() {
    let stage = Stage::new();
    let (_terminal, old) = Terminal::start(&stage, Pane::Client, "A=1", "");
    // The refresh lock keeps the helper waiting until it is killed.
    std::fs::create_dir(stage.claude().join(".oauth_refresh.lock")).unwrap();
    fail(&stage, old);
    assert!(wait_until(|| helpers(&stage).len() == 1));
    kill_helpers(&stage);
    // As if it had died a minute ago.
    let mut intent = stage.intent();
    intent["step_at"] = json!(intent["step_at"].as_i64().unwrap() - 60_000);
    stage.state(&format!("session/{SID}/restart.json"), &intent.to_string());
    let mut payload = stage.payload("server_error", "API Error: 529 Overloaded.");
    payload["prompt_id"] = json!("second");
    stage.write_failed_turn("server_error", "API Error: 529 Overloaded.");
    let output = stage.run(old.cast_unsigned(), &payload);
    assert_eq!(output.status.code(), Some(2), "{}", stage.log());
    assert_eq!(stage.intent()["outcome"], "rolled-back");
    assert_eq!(registered(&stage), [old]);
}
