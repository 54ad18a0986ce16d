//! A hook whose payload never ends gives up by itself: exit code 0, within its
//! bound, and a line in the log.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::process::{Command, Stdio};
use std::time::Duration;

use tests::client::wait_for;
use tests::executables::executable;

#[test]
fn a_hook_that_is_never_told_gives_up_and_says_so() {
    let hooks = ["session-lease", "drive-gate", "walled-heal", "wedge-heal"];
    let mut running: Vec<_> = hooks
        .map(|hook| {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join("root");
            let mut command = Command::new(executable(hook));
            command
                .arg("--root")
                .arg(&root)
                .env_clear()
                .env("HOME", home.path());
            // Standard input stays open: the pipe's other end is kept here.
            let child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            (hook, home, root, child)
        })
        .into();
    for (hook, _home, root, child) in &mut running {
        let status = wait_for(Duration::from_secs(15), || child.try_wait().unwrap());
        let status = status.unwrap_or_else(|| {
            child.kill().unwrap();
            panic!("{hook} hangs")
        });
        assert_eq!(status.code(), Some(0), "{hook}");
        let log = fs_err::read_to_string(root.join("debug.log")).unwrap();
        assert!(log.contains(&format!(" {hook} gave up: ")), "{log}");
    }
}
