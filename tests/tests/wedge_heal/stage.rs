//! A throw-away home with a state root, a client's folder and a stand-in for the
//! client: a process that is registered as one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::executables::executable;

pub(crate) const SID: &str = "42c4d508-4d22-47e5-b86c-6edb7aab8318";
pub(crate) const PROMPT: &str = "11111111-2222-3333-4444-555555555555";

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

pub(crate) fn now_ms() -> i64 {
    shared::edge::clock::now_ms()
}

/// Ends a process that the test started.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) struct Stage {
    dir: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self {
            dir: tempfile::Builder::new().prefix("rungs-").tempdir().unwrap(),
        };
        for sub in ["claude/sessions", "claude/projects/p", "project"] {
            std::fs::create_dir_all(stage.path().join(sub)).unwrap();
        }
        stage.config(&json!({ "format": 1, "backoff_s_min": 1, "backoff_s_max": 4 }));
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    pub(crate) fn claude(&self) -> PathBuf {
        self.path().join("claude")
    }

    /// Writes a file under the state root.
    pub(crate) fn state(&self, name: &str, content: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn config(&self, config: &Value) {
        self.state("config.json", &config.to_string());
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.root().join(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.root().join(format!("session/{SID}/debug.log"))).unwrap_or_default()
    }

    pub(crate) fn episode(&self) -> Value {
        self.json(&format!("session/{SID}/episodes/{PROMPT}"))
    }

    pub(crate) fn signal(&self) -> Value {
        self.json(&format!("signals/{SID}.wedge-heal.json"))
    }

    pub(crate) fn intent(&self) -> Value {
        self.json(&format!("session/{SID}/restart.json"))
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.claude().join(format!("projects/p/{SID}.jsonl"))
    }

    /// The transcript of a turn that failed.
    pub(crate) fn write_failed_turn(&self, error: &str, text: &str) {
        let prompt = json!({"type":"user","sessionId":SID,"promptSource":"typed","message":{"role":"user","content":"go"}});
        let failed = json!({"type":"assistant","sessionId":SID,"isApiErrorMessage":true,"error":error,
            "timestamp":"2026-11-30T21:00:00.000Z",
            "message":{"model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":text}]}});
        std::fs::write(self.transcript(), format!("{prompt}\n{failed}\n")).unwrap();
    }

    /// Registers a process as the session's client.
    pub(crate) fn register(&self, pid: u32, sid: &str, status: &str, waiting_for: Option<&str>) {
        let start = shared::edge::proc::ProcessId::of(pid.cast_signed()).map_or(0, |process| process.start);
        let mut session = json!({"pid":pid,"sessionId":sid,"procStart":start.to_string(),"kind":"interactive",
            "entrypoint":"cli","status":status,"statusUpdatedAt":now_ms() - 1000});
        if let Some(what) = waiting_for {
            session["waitingFor"] = json!(what);
        }
        let path = self.claude().join(format!("sessions/{pid}.json"));
        std::fs::write(path, session.to_string()).unwrap();
    }

    /// A process that stands in for a client in no terminal at all.
    pub(crate) fn idle_client(&self) -> Ended {
        let child = Command::new("sleep")
            .arg("300")
            .env_clear()
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.register(child.id(), SID, "idle", None);
        Ended(child)
    }

    pub(crate) fn payload(&self, error: &str, text: &str) -> Value {
        json!({"session_id":SID,"transcript_path":self.transcript(),"cwd":self.path().join("project"),
            "prompt_id":PROMPT,"hook_event_name":"StopFailure","error":error,"last_assistant_message":text})
    }

    /// The hook as the client starts it.
    pub(crate) fn hook(&self, client: u32, words: &[&str]) -> Command {
        let mut command = Command::new(executable("wedge-heal"));
        command
            .arg("--root")
            .arg(self.root())
            .args(words)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("CLAUDE_CONFIG_DIR", self.claude())
            .env("CLAUDE_PID", client.to_string())
            .current_dir(self.path().join("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the hook with this payload.
    pub(crate) fn start(&self, client: u32, payload: &Value) -> Child {
        let mut child = self.hook(client, &[]).spawn().unwrap();
        feed(&mut child, payload.to_string().as_bytes());
        child
    }

    /// Runs the hook with this payload to its end.
    pub(crate) fn run(&self, client: u32, payload: &Value) -> Output {
        self.start(client, payload).wait_with_output().unwrap()
    }
}

pub(crate) fn feed(child: &mut Child, bytes: &[u8]) {
    let mut pipe = child.stdin.take().unwrap();
    // A hook that does not read to the end is free to do so.
    std::io::Write::write_all(&mut pipe, bytes).ok();
}

pub(crate) fn assert_silent(output: &Output) {
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), shown.as_ref(), output.stdout.len()),
        (Some(0), "", 0)
    );
}

pub(crate) fn assert_woken(output: &Output) {
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("rungs: "),
        "{output:?}"
    );
}
