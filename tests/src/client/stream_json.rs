//! Sessions as programs run them: messages in and out as JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::NO_QUESTIONS;
use super::home::Home;
use super::processes::end_process;
use super::wait::wait_until;

/// A running stream-json session. Dropping it ends the process.
#[derive(Debug)]
pub struct StreamJson {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl StreamJson {
    /// Starts a session that asks no permission questions.
    pub fn start(home: &Home, further_arguments: &[&str]) -> StreamJson {
        let mut child = home
            .claude()
            .args([
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
            ])
            .args(["--verbose", NO_QUESTIONS])
            .args(further_arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn({
            let lines = Arc::clone(&lines);
            move || {
                for line in stdout.lines().map_while(Result::ok) {
                    let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    lock(&lines).push(value);
                }
            }
        });
        StreamJson {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// The client process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a person's message.
    pub fn send(&mut self, text: &str) {
        let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
        let stdin = self.stdin.as_mut().expect("the input is open");
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    /// Everything the session has written.
    pub fn lines(&self) -> Vec<Value> {
        lock(&self.lines).clone()
    }

    /// The texts of the results so far, one a turn.
    pub fn results(&self) -> Vec<String> {
        let lines = self.lines();
        let results = lines
            .iter()
            .filter(|line| line.get("type") == Some(&json!("result")));
        results
            .map(|line| {
                line.get("result")
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned()
            })
            .collect()
    }

    /// Waits for so many results.
    pub fn wait_results(&self, count: usize, patience: Duration) -> Vec<String> {
        let came = wait_until(patience, || self.results().len() >= count);
        assert!(
            came,
            "not {count} results within {patience:?}: {:?}",
            self.results()
        );
        self.results()
    }

    /// Closes the input, as a program does at its end, and waits for the exit.
    pub fn finish(&mut self, patience: Duration) -> bool {
        self.stdin = None;
        wait_until(patience, || self.child.try_wait().unwrap().is_some())
    }
}

impl Drop for StreamJson {
    fn drop(&mut self) {
        self.stdin = None;
        if self.child.try_wait().ok().flatten().is_none() {
            end_process(self.child.id());
        }
        self.child.wait().ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
