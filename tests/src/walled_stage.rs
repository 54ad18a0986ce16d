//! A session that has just hit its weekly wall, as walled-heal finds it: two
//! accounts, a lease, the client's register, and a transcript of any size. No
//! client is needed.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::executables::executable;
use crate::login::Login;

const SID: &str = "88bd2ded-517b-4dd6-85d1-91209f60a582";
const PROMPT: &str = "b0f7694e-6ca3-450f-97d2-9166b543dd71";

/// The stage. This process stands in for the client.
#[derive(Debug)]
pub struct WalledStage {
    folder: TempDir,
    transcript: PathBuf,
}

impl WalledStage {
    /// A stage whose transcript is `transcript_bytes` large: a hole, then 300 KB of
    /// bookkeeping, then the turn.
    pub fn new(transcript_bytes: u64) -> Self {
        let folder = tempfile::Builder::new().prefix("rungs-").tempdir().unwrap();
        let config = folder.path().join(".claude");
        let project = config.join("projects/-home-u-proj");
        fs_err::create_dir_all(&project).unwrap();
        fs_err::create_dir_all(config.join("sessions")).unwrap();
        let transcript = project.join(format!("{SID}.jsonl"));
        write_transcript(&transcript, transcript_bytes);
        Login::new("A").write(&config);
        let root = folder.path().join(".rungs");
        for sub in ["accounts/B", "shards", &format!("session/{SID}")] {
            fs_err::create_dir_all(root.join(sub)).unwrap();
        }
        Login::new("B").write(&root.join("accounts/B"));
        symlink(&config, root.join("accounts/A")).unwrap();
        let register =
            json!({ "sessionId": SID, "status": "busy", "statusUpdatedAt": 1, "kind": "interactive" });
        let pid = std::process::id();
        fs_err::write(config.join(format!("sessions/{pid}.json")), register.to_string()).unwrap();
        let stage = Self { folder, transcript };
        stage.set_back();
        stage
    }

    /// Puts the stage back to the moment of the wall.
    pub fn set_back(&self) {
        let root = self.root();
        let shard = root.join("shards/default");
        fs_err::remove_file(&shard).ok();
        symlink("../accounts/A", shard).unwrap();
        for gone in ["pool.json", "flips.jsonl"] {
            fs_err::remove_file(root.join(gone)).ok();
        }
        let session = root.join("session").join(SID);
        fs_err::remove_dir_all(session.join("episodes")).ok();
        fs_err::remove_file(session.join("wall.json")).ok();
        let prompt = json!({ "format": 1, "at": 1, "event": "prompt", "prompt_id": PROMPT });
        fs_err::write(session.join("lease.jsonl"), format!("{prompt}\n")).unwrap();
    }

    /// The state root.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join(".rungs")
    }

    /// The payload of the failed turn.
    pub fn payload(&self) -> String {
        let payload = json!({
            "session_id": SID,
            "transcript_path": self.transcript,
            "cwd": "/home/u/proj",
            "prompt_id": PROMPT,
            "hook_event_name": "StopFailure",
            "error": "rate_limit",
            "last_assistant_message": "You've hit your weekly limit · resets Dec 3, 8:16pm (UTC)",
        });
        format!("{payload}\n")
    }

    /// Runs `walled-heal`, behind the words of a tool that watches it.
    pub fn run(&self, before: &[&str]) -> Output {
        self.run_with(before, &[])
    }

    /// What `walled-heal` would do, by the code that does it.
    pub fn explain(&self) -> Value {
        let output = self.run_with(&[], &["--explain"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"))
    }

    fn run_with(&self, before: &[&str], after: &[&str]) -> Output {
        let hook = executable("walled-heal");
        let words: Vec<&Path> = before.iter().map(Path::new).chain([hook.as_path()]).collect();
        let mut command = self.command(&words);
        command.args(after);
        self.start(command).wait_with_output().unwrap()
    }

    /// These words and `--root`, in the environment of the session's hooks.
    pub fn command(&self, words: &[&Path]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("--root").arg(self.root());
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("CLAUDE_PID", std::process::id().to_string())
            .env(
                "CLAUDE_SECURESTORAGE_CONFIG_DIR",
                self.root().join("shards/default"),
            );
        command
    }

    /// Starts it with the failed turn's payload.
    pub fn start(&self, mut command: Command) -> Child {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(self.payload().as_bytes())
            .unwrap();
        child
    }

    /// The failed line reaches the transcript, as it does 0.2 s after the hook.
    pub fn write_failed_line(&self) {
        let line = json!({ "type": "assistant", "sessionId": SID, "error": "rate_limit",
            "isApiErrorMessage": true, "apiError": "usage_limit_reached",
            "message": { "role": "assistant", "model": "<synthetic>", "stop_reason": "stop_sequence",
                "content": [{ "type": "text", "text": "You've hit your weekly limit" }] } });
        let mut file = fs_err::OpenOptions::new()
            .append(true)
            .open(&self.transcript)
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The session's debug log.
    pub fn log(&self) -> String {
        let path = self.root().join(format!("session/{SID}/debug.log"));
        fs_err::read_to_string(path).unwrap_or_default()
    }

    /// The client's folder.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join(".claude")
    }

    /// The account that the session is on now.
    pub fn account(&self) -> String {
        let target = fs_err::read_link(self.root().join("shards/default")).unwrap();
        target.file_name().unwrap().to_string_lossy().into_owned()
    }
}

fn write_transcript(path: &Path, bytes: u64) {
    let filler = json!({ "type": "api-request-shape", "sessionId": SID, "body": "x".repeat(900) });
    let filler = format!("{filler}\n");
    let call = json!({ "type": "assistant", "sessionId": SID, "message": { "role": "assistant",
        "content": [{ "type": "tool_use", "id": "toolu_FAKE", "name": "Bash", "input": {} }] } });
    let result = json!({ "type": "user", "sessionId": SID, "message": { "role": "user",
        "content": [{ "type": "tool_result", "tool_use_id": "toolu_FAKE", "content": "ok" }] } });
    let mut text = filler.repeat(300 * 1024 / filler.len());
    for line in [call, result] {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let mut file = fs_err::File::create(path).unwrap();
    let hole = bytes.saturating_sub(text.len() as u64 + 1);
    file.seek(SeekFrom::Start(hole)).unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
