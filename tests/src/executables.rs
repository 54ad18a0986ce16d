//! The project's own executables, as built.

use std::env;
use std::path::PathBuf;

/// An executable by its name, e.g. `walled-heal`: the release build that
/// `tests/run` made, else the one that lies beside the running test.
///
/// # Panics
/// When it has not been built.
pub fn executable(name: &str) -> PathBuf {
    let folder = match env::var_os("RUNGS_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        // The running test is target/<host>/debug/deps/<test>.
        None => env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .to_owned(),
    };
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} has not been built: cargo build --workspace --bins",
        path.display()
    );
    path
}
