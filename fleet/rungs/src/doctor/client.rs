//! Is the client new enough?

use std::time::Duration;

use shared::edge::{env, spawn};

use super::Finding;
use crate::programs;

/// The oldest client that runs our registration. The binding part is the exec
/// form (`args`): the client's changelog names 2.1.139, and an older one would
/// start the hooks without `--root`. `StopFailure` came with 2.1.78 and
/// `asyncRewake` before 2.1.139 (client's hook documentation, April 2026).
const OLDEST: (u64, u64, u64) = (2, 1, 139);

/// The version that everything was measured with.
const MEASURED: (u64, u64, u64) = (2, 1, 332);

const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check() -> Option<Finding> {
    let check = "client";
    let path = env::value(env::PATH)?;
    let claude = std::env::split_paths(&path)
        .map(|folder| folder.join("claude"))
        .find(|file| programs::is_program(file));
    let Some(claude) = claude else {
        return Some(Finding::not_looked(
            check,
            "no claude on the PATH",
            "install Claude Code, or add it to the PATH",
        ));
    };
    let shown = claude.display();
    let mut command = spawn::command(&claude);
    command.arg("--version");
    let output = spawn::run(command, None, LIMIT);
    let text = match &output {
        Ok(output) if output.is_success() => output.stdout_text(),
        _ => String::new(),
    };
    Some(match version(&text) {
        None => Finding::not_looked(
            check,
            format!("{shown} --version told no version within {} s", LIMIT.as_secs()),
            "run it by hand and see",
        ),
        Some(found) if found < OLDEST => Finding::wrong(
            check,
            format!(
                "{shown} is {}; hooks with args need {}",
                dotted(found),
                dotted(OLDEST)
            ),
            "claude update",
        ),
        Some(found) => Finding::ok(
            check,
            format!(
                "{shown} is {}; needed {}, measured with {}",
                dotted(found),
                dotted(OLDEST),
                dotted(MEASURED)
            ),
        ),
    })
}

fn version(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.split_whitespace().next()?.splitn(3, '.');
    let mut number = || {
        let part = parts.next()?;
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some((number()?, number()?, number()?))
}

fn dotted((major, minor, patch): (u64, u64, u64)) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(version("2.1.332 (Claude Code)\n"), Some((2, 1, 332)));
        assert_eq!(version("2.1.9-beta.1"), Some((2, 1, 9)));
        assert!(version("2.1.9") < Some(OLDEST));
        for bad in ["", "claude", "2.1", "2.x.1"] {
            assert_eq!(version(bad), None, "{bad:?}");
        }
    }
}
