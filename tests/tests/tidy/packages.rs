//! Who depends on whom. The rungs meet in files and not in code, and a hook pays
//! for what is linked into it on every turn.

use std::process::Command;

use serde_json::Value;

use crate::assert_none;
use crate::tree;

/// A package of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Folder from the workspace's root: `hooks/drive-gate`.
    pub(crate) folder: String,
    dependencies: Vec<String>,
}

impl Package {
    /// Whether it is an executable of the suite.
    pub(crate) fn is_system(&self) -> bool {
        self.is_hook() || self.folder.starts_with("fleet/")
    }

    fn is_hook(&self) -> bool {
        self.folder.starts_with("hooks/")
    }

    /// The names of all that is compiled into it, from far away too.
    fn linked(&self) -> Vec<String> {
        let tree = cargo(&[
            "tree",
            "--package",
            &self.name,
            "--edges",
            "normal",
            "--prefix",
            "none",
        ]);
        tree.lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|name| *name != self.name)
            .map(str::to_owned)
            .collect()
    }
}

fn cargo(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(words)
        .args(["--locked", "--offline"])
        .current_dir(tree::root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The packages of the workspace.
pub(crate) fn packages() -> Vec<Package> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let root = format!("{}/", tree::root().display());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        folder: text(&package["manifest_path"])
            .trim_start_matches(&root)
            .trim_end_matches("/Cargo.toml")
            .to_owned(),
        dependencies: package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dependency| text(&dependency["name"]))
            .collect(),
    };
    let packages: Vec<Package> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(package)
        .collect();
    assert!(packages.iter().filter(|package| package.is_system()).count() >= 6);
    packages
}

#[test]
fn no_system_depends_on_another() {
    let packages = packages();
    let is_system = |name: &str| {
        packages
            .iter()
            .any(|package| package.is_system() && package.name == name)
    };
    let mut findings = Vec::new();
    for package in &packages {
        for name in package.dependencies.iter().filter(|name| is_system(name)) {
            findings.push(format!("{} depends on {name}", package.folder));
        }
    }
    assert_none(&findings, "systems meet in files only (docs/, files and events)");
}

#[test]
fn hooks_link_nothing_heavy() {
    let mut findings = Vec::new();
    for package in packages().iter().filter(|package| package.is_hook()) {
        for name in package.linked() {
            let is_banned = match name.as_str() {
                "clap" | "regex" | "regex-automata" | "tokio" | "tracing" => true,
                // It asks the service for the usage; nothing else talks to a network.
                "ureq" | "rustls" => package.name != "walled-heal",
                _ => false,
            };
            if is_banned {
                findings.push(format!("{} links {name}", package.folder));
            }
        }
    }
    assert_none(&findings, "a hook is paid for on every turn");
}
