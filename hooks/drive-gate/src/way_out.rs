//! How the session runs `rungs goal` from where it is.
//!
//! A way out that can't be run is none: the programs' folder is seldom on the
//! session's PATH, and the goal may lie under a state root that `rungs` would
//! not look in by itself.

use std::path::Path;

use shared::edge::state::State;
use shared::hook::Call;

/// The command as a shell takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WayOut {
    /// The program: the one that lies beside the gate, in full, else its name.
    pub(crate) program: String,
    /// ` --root …` where the state root is not the default one, else nothing.
    pub(crate) options: String,
}

impl WayOut {
    /// The way out of this gate's hold.
    pub(crate) fn of(call: &Call) -> Self {
        let gate = std::env::current_exe().ok();
        let beside = gate.and_then(|gate| Some(gate.parent()?.join("rungs")));
        let program = beside.filter(|rungs| rungs.is_file());
        let root = call.state.path();
        let is_default = State::default_path().as_deref() == Some(root);
        Self {
            program: program.map_or_else(|| "rungs".to_owned(), |rungs| quoted(&rungs)),
            options: if is_default {
                String::new()
            } else {
                format!(" --root {}", quoted(root))
            },
        }
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if is_plain {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, word) in [
            ("/home/u/.rungs", "/home/u/.rungs"),
            ("/a b", "'/a b'"),
            ("/it's", r"'/it'\''s'"),
            ("/$x", "'/$x'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
