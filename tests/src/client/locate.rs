//! The pinned client, installed by `tests/install-client`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed client of the pinned version.
#[derive(Debug, Clone)]
pub struct Client {
    binary: PathBuf,
}

impl Client {
    /// The pinned version, e.g. `2.1.332`.
    pub fn version() -> &'static str {
        include_str!("../../client-version").trim()
    }

    /// The client, or `None` after saying so and counting the test as skipped.
    ///
    /// # Panics
    /// In CI, where these tests must run.
    pub fn find() -> Option<Client> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let binary = tests
            .join("../target/client")
            .join(Client::version())
            .join("claude");
        if !binary.exists() {
            return skip("the client is not installed (tests/install-client)");
        }
        if Command::new("tmux").arg("-V").output().is_err() {
            return skip("tmux is not installed");
        }
        let binary = binary.canonicalize().ok()?;
        Some(Client { binary })
    }

    /// The executable itself.
    pub fn binary(&self) -> &Path {
        &self.binary
    }
}

/// Says that the running test is skipped. `tests/run` counts them beforehand.
fn skip(why: &str) -> Option<Client> {
    assert!(
        env::var_os("CI").is_none_or(|value| value.is_empty()),
        "{why}; in CI the tests of the real client must run"
    );
    let thread = std::thread::current();
    eprintln!("SKIPPED {}: {why}", thread.name().unwrap_or("a test"));
    None
}
