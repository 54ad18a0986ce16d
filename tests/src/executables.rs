//! The project's own executables, as built.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// An executable by its name, e.g. `walled-heal`: the release build that
/// `tests/run` made (`RUNGS_BIN_DIR`), else one that is brought up to date now, so
/// that no test ever runs a stale one.
///
/// # Panics
/// When it can't be built.
pub fn executable(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| env::var_os("RUNGS_BIN_DIR").map_or_else(build, PathBuf::from));
    let path = folder.join(name);
    assert!(path.is_file(), "{} has not been built", path.display());
    path
}

fn build() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--workspace", "--bins"])
        .current_dir(root)
        .status()
        .unwrap();
    assert!(built.success(), "cargo build --workspace --bins: {built}");
    // The running test is target/<host>/debug/deps/<test>.
    let test = env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}
