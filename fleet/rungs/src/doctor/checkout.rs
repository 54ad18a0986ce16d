//! Where the client's folder is a git checkout, hooks and settings in it are
//! running code: off main, dirty or diverged, an update by git would revert
//! them. The fix is always to merge first; changing the branch under running
//! sessions is never advised.

use std::path::Path;
use std::time::Duration;

use shared::edge::spawn;

use super::Finding;

const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check(claude_dir: &Path) -> Finding {
    let check = "client folder's checkout";
    let shown = claude_dir.display();
    if fs_err::symlink_metadata(claude_dir.join(".git")).is_err() {
        return Finding::ok(check, format!("{shown} is no git checkout of its own"));
    }
    let Some(branch) = git(claude_dir, &["symbolic-ref", "--short", "-q", "HEAD"]) else {
        return match git(claude_dir, &["rev-parse", "--verify", "-q", "HEAD"]) {
            Some(commit) => Finding::wrong(
                check,
                format!("{shown} is on no branch, at {commit}"),
                "merge what it holds into main first; leave the folder on what runs until then",
            ),
            None => Finding::not_looked(
                check,
                format!("git tells nothing about {shown}"),
                "see that git works there",
            ),
        };
    };
    let mut wrong = Vec::new();
    let main = main_branch(claude_dir);
    if branch != main {
        wrong.push(format!("is on {branch}, not {main}"));
    }
    let status = git(claude_dir, &["status", "--porcelain", "--untracked-files=no"]);
    let Some(status) = status else {
        return Finding::not_looked(
            check,
            format!("git status gave no answer in {shown}"),
            "see that git works there",
        );
    };
    if !status.is_empty() {
        wrong.push(format!("has {} changed tracked files", status.lines().count()));
    }
    let upstream = git(
        claude_dir,
        &["rev-list", "--left-right", "--count", "@{upstream}...HEAD"],
    );
    let counts = upstream.as_deref().map(|text| {
        let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    });
    if let Some((behind, ahead)) = counts
        && behind > 0
        && ahead > 0
    {
        wrong.push(format!(
            "has diverged: {ahead} commits of its own, {behind} missing"
        ));
    }
    let compared = if counts.is_some() {
        "compared with its upstream as last fetched"
    } else {
        "it has no upstream to compare with"
    };
    if wrong.is_empty() {
        return Finding::ok(check, format!("{shown} is on {branch}, clean; {compared}"));
    }
    Finding::wrong(
        check,
        format!("{shown} {}; {compared}", wrong.join(", ")),
        "merge first: commit what is changed and merge it into main, so that no update reverts what runs",
    )
}

fn main_branch(folder: &Path) -> String {
    let remote = git(
        folder,
        &["symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD"],
    );
    if let Some(name) = remote.as_deref().and_then(|name| name.strip_prefix("origin/")) {
        return name.to_owned();
    }
    let has = |name: &str| git(folder, &["rev-parse", "--verify", "-q", name]).is_some();
    if !has("refs/heads/main") && has("refs/heads/master") {
        return "master".to_owned();
    }
    "main".to_owned()
}

/// What git prints; `None` where it fails. It is kept from writing anything.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let mut command = spawn::command("git");
    command
        .arg("--no-optional-locks")
        .arg("-C")
        .arg(folder)
        .args(["-c", "core.fsmonitor=false"])
        .args(words);
    for key in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(key);
    }
    let output = spawn::run(command, None, LIMIT).ok()?;
    output
        .is_success()
        .then(|| output.stdout_text().trim().to_owned())
}
