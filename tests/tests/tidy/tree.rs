//! The files of the checkout.

use std::path::{Path, PathBuf};

/// A file: its path from the workspace's root, and what is in it.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|end| end == "rs")
    }

    /// Whether the whole file is compiled for tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
    }

    pub(crate) fn is_fixture(&self) -> bool {
        self.path.starts_with("tests/fixtures/")
    }

    /// The lines before the unit tests, which stand at a file's end.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| *line != "#[cfg(test)]")
    }
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every text file of the checkout, without what git and cargo keep there.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            // In a worktree `.git` is a file.
            if entry.file_name() == ".git" || entry.file_name() == "target" {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs_err::read_to_string(&path)
            {
                let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.push(File { path, text });
            }
        }
    }
    assert!(files.len() > 100, "the checkout is in {}", root.display());
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// The Rust source files.
pub(crate) fn rust() -> impl Iterator<Item = File> {
    files().into_iter().filter(File::is_rust)
}
