//! One hook before one input: a throw-away home in which every hook would do its
//! full work, and a folder outside that must stay as it is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::executables::executable;

use crate::table::Cell;

pub(crate) const SID: &str = "75a75ff2-40b5-445d-a60f-2558410a19fd";
pub(crate) const PROMPT: &str = "158a2d05-81a4-43ae-a091-1909e1bd1310";

/// Nobody: for what root may do and others may not.
pub(crate) const NOBODY: u32 = 65534;

/// The bound on any hook's working phase, with the time of a busy machine.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Lease,
    Gate,
    Walled,
    Wedge,
}

pub(crate) const HOOKS: [Hook; 4] = [Hook::Lease, Hook::Gate, Hook::Walled, Hook::Wedge];

impl Hook {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lease => "session-lease",
            Self::Gate => "drive-gate",
            Self::Walled => "walled-heal",
            Self::Wedge => "wedge-heal",
        }
    }
}

/// A file of the session, under the root.
pub(crate) fn of_session(name: &str) -> String {
    format!("session/{SID}/{name}")
}

/// The client's sentence for a wall, at whatever time of day this runs: a reset
/// just passed would be waited for and not slept through.
fn wall_two_hours_long() -> String {
    let minutes = (shared::edge::clock::now_ms() / 60_000 + 120) % (24 * 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    let half = if hour < 12 { "am" } else { "pm" };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    format!("You've hit your 5-hour limit · resets {hour}:{minute:02}{half} (UTC)")
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A stand-in for the client; ended with the stage.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) struct Stage {
    folder: TempDir,
    client: Client,
    pub(crate) hook: Hook,
    /// The payload; `raw` goes before it.
    pub(crate) payload: Value,
    pub(crate) raw: Option<Vec<u8>>,
    /// Whether `--root` is given.
    pub(crate) names_root: bool,
    pub(crate) env: BTreeMap<&'static str, OsString>,
    /// Shell words before the hook's start, as `ulimit -f 0;`.
    pub(crate) before: &'static str,
    /// Redirections of the hook, as `>&-`.
    pub(crate) redirect: &'static str,
    /// Standard output is a pipe that nobody reads.
    pub(crate) reader_is_gone: bool,
    /// Run the hook as another user than root.
    pub(crate) as_nobody: bool,
    /// Files under the root that must keep every byte.
    pub(crate) frozen: Vec<PathBuf>,
    /// Set where this machine can't bring the input about.
    pub(crate) skipped: Option<&'static str>,
}

impl Stage {
    pub(crate) fn new(hook: Hook) -> Self {
        let folder = tempfile::Builder::new().prefix("rungs-bad-").tempdir().unwrap();
        let child = Command::new("sleep")
            .arg("300")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = Client(child);
        let mut stage = Self {
            folder,
            client,
            hook,
            payload: Value::Null,
            raw: None,
            names_root: true,
            env: BTreeMap::new(),
            before: "",
            redirect: "",
            reader_is_gone: false,
            as_nobody: false,
            frozen: Vec::new(),
            skipped: None,
        };
        stage.set_up();
        stage
    }

    fn set_up(&mut self) {
        for folder in [
            "bin",
            "home/.claude/sessions",
            "home/.claude/projects/p",
            "project",
            "outside",
        ] {
            fs_err::create_dir_all(self.path().join(folder)).unwrap();
        }
        // Copied, so that any user can run it wherever the build lies; and by
        // another process, since a file that some fork still has open for writing
        // can't be run.
        let copied = Command::new("cp")
            .arg(executable(self.hook.name()))
            .arg(self.path().join("bin/hook"))
            .status();
        assert!(copied.unwrap().success());
        let now = shared::edge::clock::now_ms();
        let pid = self.client.0.id();
        let start = shared::edge::proc::ProcessId::of(pid.cast_signed())
            .unwrap()
            .start;
        let registered = json!({"pid": pid, "sessionId": SID, "procStart": start.to_string(),
            "kind": "interactive", "status": "idle", "statusUpdatedAt": now - 1000});
        let register = self.path().join(format!("home/.claude/sessions/{pid}.json"));
        fs_err::write(register, registered.to_string()).unwrap();
        self.write_transcript(&self.failed_turn());

        fs_err::create_dir(self.root()).unwrap();
        fs_err::set_permissions(self.root(), PermissionsExt::from_mode(0o700)).unwrap();
        self.put(
            "config.json",
            r#"{"format":1,"backoff_s_min":0,"backoff_s_max":1}"#,
        );
        let lease = [
            json!({"format":1,"at":now - 5000,"event":"start","host":{"pid":pid,"start":start,"kind":"terminal"}}),
            json!({"format":1,"at":now - 4000,"event":"prompt","prompt_id":PROMPT}),
        ];
        let lease: String = lease.iter().map(|line| format!("{line}\n")).collect();
        self.put(&of_session("lease.jsonl"), &lease);
        let goal =
            json!({"format":1,"sid":SID,"text":"ship it","state":"open","revision":1,"set_at":now - 3000});
        self.put(&format!("goals/{SID}.json"), goal.to_string());
        for account in ["a", "b"] {
            let login = json!({"claudeAiOauth":{"accessToken":"made-up","refreshToken":"made-up",
                "expiresAt":now + 86_400_000,"subscriptionType":"max"}});
            self.put(
                &format!("accounts/{account}/.credentials.json"),
                login.to_string(),
            );
        }
        fs_err::create_dir(self.root().join("shards")).unwrap();
        symlink("../accounts/a", self.root().join("shards/default")).unwrap();
        self.put("pool.json", r#"{"format":1,"order":["a","b"],"accounts":{}}"#);

        self.env("HOME", self.path().join("home"));
        self.env("CLAUDE_PID", pid.to_string());
        self.env(
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            self.root().join("shards/default"),
        );
        self.payload = self.good_payload();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    /// Where nothing of ours may ever be written.
    pub(crate) fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.path().join(format!("home/.claude/projects/p/{SID}.jsonl"))
    }

    pub(crate) fn client_pid(&self) -> u32 {
        self.client.0.id()
    }

    pub(crate) fn env(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.env.insert(name, value.into());
    }

    pub(crate) fn set(&mut self, field: &str, value: Value) {
        self.payload[field] = value;
    }

    /// Writes a file under the root.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    /// Writes a file under the root that must then keep every byte.
    pub(crate) fn freeze(&mut self, name: &str, content: impl AsRef<[u8]>) {
        self.put(name, content);
        self.frozen.push(self.root().join(name));
    }

    /// Puts a link in the place of a file or folder of the root, to something
    /// outside that looks just like it.
    pub(crate) fn link_out(&self, name: &str) {
        let inside = self.root().join(name);
        let outside = self.outside().join("target");
        if inside.symlink_metadata().is_ok() {
            fs_err::rename(&inside, &outside).unwrap();
        } else {
            fs_err::create_dir_all(inside.parent().unwrap()).unwrap();
            fs_err::create_dir(&outside).unwrap();
        }
        symlink(&outside, &inside).unwrap();
    }

    pub(crate) fn write_transcript(&self, text: &str) {
        fs_err::write(self.transcript(), text).unwrap();
    }

    /// What the failed turn of this stage's hook looks like in the transcript.
    pub(crate) fn failed_turn(&self) -> String {
        let asked = json!({"type":"user","sessionId":SID,"promptSource":"typed",
            "message":{"role":"user","content":"go"}});
        let (error, text) = self.failure();
        let failed = json!({"type":"assistant","sessionId":SID,"isApiErrorMessage":true,"error":error,
            "timestamp":"2026-11-30T21:00:00.000Z","message":{"model":"<synthetic>","role":"assistant",
            "stop_reason":"stop_sequence","content":[{"type":"text","text":text}]}});
        format!("{asked}\n{failed}\n")
    }

    fn failure(&self) -> (&'static str, String) {
        match self.hook {
            Hook::Wedge => ("server_error", "API Error: 500 Internal server error".to_owned()),
            _ => ("rate_limit", wall_two_hours_long()),
        }
    }

    fn good_payload(&self) -> Value {
        let mut payload = json!({"session_id": SID, "transcript_path": self.transcript(),
            "cwd": self.path().join("project"), "prompt_id": PROMPT});
        let more = match self.hook {
            Hook::Lease => json!({"hook_event_name": "SessionStart", "source": "resume"}),
            Hook::Gate => json!({"hook_event_name": "Stop", "stop_hook_active": false,
                "last_assistant_message": "Half of it is done.", "background_tasks": [],
                "session_crons": []}),
            Hook::Walled | Hook::Wedge => {
                let (error, text) = self.failure();
                json!({"hook_event_name": "StopFailure", "error": error,
                    "last_assistant_message": text})
            }
        };
        payload
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        payload
    }

    /// session-lease then looks into the transcript.
    pub(crate) fn native_continuation(&mut self) {
        if self.hook == Hook::Lease {
            self.set("hook_event_name", json!("UserPromptSubmit"));
            self.set("prompt", json!("Your claude.ai usage limit has reset. Go on."));
        }
    }

    fn payload_bytes(&self) -> Vec<u8> {
        match &self.raw {
            Some(raw) => raw.clone(),
            None => format!("{}\n", self.payload).into_bytes(),
        }
    }

    /// The hook as the client starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        let line = format!("{} exec \"$@\" {}", self.before, self.redirect);
        command
            .arg("-c")
            .arg(line)
            .arg("sh")
            .arg(self.path().join("bin/hook"));
        if self.names_root {
            command.arg("--root").arg(self.root());
        }
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TZ", "UTC");
        command.envs(&self.env).current_dir(self.path().join("project"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.as_nobody && is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        if self.reader_is_gone {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            command.stdout(writer);
        }
        command
    }

    /// Gives everything to the user that the hook runs as.
    fn give_to_nobody(&self) {
        fs_err::set_permissions(self.path(), PermissionsExt::from_mode(0o755)).unwrap();
        if is_root() {
            for path in walk(self.path()) {
                lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }

    /// A file of another user. Only root can make one.
    pub(crate) fn give_away(&mut self, name: &str) {
        self.frozen.push(self.root().join(name));
        if is_root() {
            chown(self.root().join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        } else {
            self.skipped = Some("only root can give a file to another user");
        }
    }

    fn logs(&self) -> String {
        let names = ["debug.log".to_owned(), of_session("debug.log")];
        let read = |name: &String| fs_err::read_to_string(self.root().join(name)).unwrap_or_default();
        names.iter().map(read).collect()
    }

    /// Runs the hook and checks what it did.
    pub(crate) fn check(&mut self, cell: Cell) {
        if let Some(why) = self.skipped {
            eprintln!("SKIPPED for {}: {why}", self.hook.name());
            return;
        }
        if self.as_nobody {
            self.give_to_nobody();
        }
        let outside = self.snapshot();
        let state = contents(&self.root());
        let ran = self.run(matches!(cell, Cell::Sleeps(_)));

        let log = self.logs();
        let told = format!("{ran:?}, log:\n{log}");
        assert!(!ran.stderr.contains("panicked"), "{told}");
        assert!(!log.contains("panicked"), "{told}");
        match cell {
            Cell::Works => self.assert_worked(&ran, &told),
            Cell::WorksAndLogs(part) => {
                self.assert_worked(&ran, &told);
                assert!(log.contains(part), "no {part:?} in {told}");
            }
            Cell::Logs(part) => {
                assert_silent(&ran, &told);
                assert!(log.contains(part), "no {part:?} in {told}");
            }
            Cell::Tells(part) => {
                assert_eq!(ran.status.and_then(|status| status.code()), Some(0), "{told}");
                let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
                let said = said["systemMessage"].as_str().unwrap_or_default();
                assert!(said.contains(part), "no {part:?} said in {told}");
                assert!(log.contains(part), "no {part:?} in {told}");
            }
            Cell::Silent => assert_silent(&ran, &told),
            Cell::Sleeps(part) => {
                assert!(ran.status.is_none(), "it did not sleep: {told}");
                assert!(log.contains(part), "no {part:?} in {told}");
            }
        }
        assert_eq!(differences(&outside, &self.snapshot()), "", "outside; {told}");
        self.assert_nothing_lost(&state);
    }

    fn assert_worked(&self, ran: &Ran, told: &str) {
        let expected = match self.hook {
            Hook::Lease | Hook::Gate => 0,
            Hook::Walled | Hook::Wedge => 2,
        };
        assert_eq!(
            ran.status.and_then(|status| status.code()),
            Some(expected),
            "{told}"
        );
        match self.hook {
            Hook::Lease => {
                let path = self.root().join(of_session("lease.jsonl"));
                let lease = fs_err::read(path).unwrap();
                let newest = lease
                    .trim_ascii_end()
                    .rsplit(|byte| *byte == b'\n')
                    .next()
                    .unwrap();
                let line: Value = serde_json::from_slice(newest).unwrap();
                let at = line["at"].as_i64().unwrap();
                assert!((shared::edge::clock::now_ms() - at).abs() < 60_000, "{line}");
                assert!(["start", "native-continue"].contains(&line["event"].as_str().unwrap()));
            }
            Hook::Gate if self.redirect.contains(">&-") || self.reader_is_gone => {}
            Hook::Gate => {
                let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
                assert_eq!(said["decision"], "block", "{told}");
            }
            Hook::Walled => {
                let shard = fs_err::read_link(self.root().join("shards/default")).unwrap();
                assert_eq!(shard, Path::new("../accounts/b"), "{told}");
            }
            Hook::Wedge => {}
        }
    }

    /// Whatever could be read before can be read now, and what is only ever
    /// appended to still begins as it did.
    fn assert_nothing_lost(&self, before: &BTreeMap<PathBuf, Vec<u8>>) {
        let after = contents(&self.root());
        for (path, old) in before {
            let new = after
                .get(path)
                .unwrap_or_else(|| panic!("{} is gone", path.display()));
            let name = path.file_name().unwrap().to_str().unwrap();
            let grows = name == "lease.jsonl" || name == "flips.jsonl";
            let is_kept = path.starts_with(self.root().join("goals"))
                || path.starts_with(self.root().join("accounts"))
                || self.frozen.contains(path);
            if grows && !self.frozen.contains(path) {
                assert!(new.starts_with(old), "{} lost its beginning", path.display());
            }
            if is_kept {
                assert!(new == old, "{} was written", path.display());
            }
            let is_json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
            if is_json(old) && !grows {
                assert!(is_json(new), "{} no longer parses", path.display());
            }
        }
        let unfinished = |path: &&PathBuf| path.extension().is_some_and(|end| end == "tmp");
        let left: Vec<_> = after.keys().filter(unfinished).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    fn run(&self, sleeps: bool) -> Ran {
        // Made before the start: the hook's own bound runs from there.
        let payload = self.payload_bytes();
        let started = Instant::now();
        let mut child = self.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A hook that does not read to the end is free to do so.
        let feeder = std::thread::spawn(move || stdin.write_all(&payload).ok());
        let patience = if sleeps { Duration::from_secs(2) } else { DEADLINE };
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if started.elapsed() > patience {
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        feeder.join().unwrap();
        let mut ran = Ran {
            status,
            stdout: String::new(),
            stderr: String::new(),
        };
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut ran.stdout).unwrap();
        }
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut ran.stderr)
            .unwrap();
        ran
    }

    /// Everything but the state root: kinds, bytes, times and modes.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let root = self.root();
        let paths = walk(self.path())
            .into_iter()
            .filter(|path| !path.starts_with(&root));
        // The folder that holds the root changes when a root is made.
        let paths = paths.filter(|path| path != self.path());
        paths.map(|path| (path.clone(), describe(&path))).collect()
    }
}

/// What a run gave; no status where it was still running.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

fn assert_silent(ran: &Ran, told: &str) {
    assert_eq!(ran.status.and_then(|status| status.code()), Some(0), "{told}");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""), "{told}");
}

fn describe(path: &Path) -> String {
    let meta = path.symlink_metadata().unwrap();
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        fs_err::read_link(path)
            .unwrap()
            .into_os_string()
            .as_bytes()
            .to_vec()
    } else if kind.is_file() && meta.len() < 1 << 20 {
        fs_err::read(path).unwrap()
    } else {
        Vec::new()
    };
    format!(
        "{kind:?} {} {} {} {:o} {}.{} {:?}",
        meta.len(),
        meta.uid(),
        meta.nlink(),
        meta.mode(),
        meta.mtime(),
        meta.mtime_nsec(),
        String::from_utf8_lossy(&content)
    )
}

fn differences(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> String {
    let paths = before.keys().chain(after.keys());
    let changed = paths.filter(|path| before.get(*path) != after.get(*path));
    changed
        .map(|path| {
            format!(
                "{}: {:?} -> {:?}\n",
                path.display(),
                before.get(path),
                after.get(path)
            )
        })
        .collect()
}

/// Every path below, links not followed; the folder itself first.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        at += 1;
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            let entries = fs_err::read_dir(path).unwrap();
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    paths
}

/// The regular files below, with their content.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let files = walk(folder).into_iter().filter(is_file);
    // A file that another run just took away is no file.
    files
        .filter_map(|path| Some((path.clone(), fs_err::read(path).ok()?)))
        .collect()
}
