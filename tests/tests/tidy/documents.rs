//! Every package has its note, every system its row, every script is readable.

use std::process::{Command, Stdio};

use crate::assert_none;
use crate::packages::packages;
use crate::tree;

#[test]
fn every_package_has_a_readme() {
    let mut findings = Vec::new();
    for package in packages() {
        let path = tree::root().join(&package.folder).join("README.md");
        let text = fs_err::read_to_string(path).unwrap_or_default();
        if !text.starts_with(&format!("# {}", package.name)) || text.lines().count() < 8 {
            findings.push(format!("{}/README.md", package.folder));
        }
    }
    assert_none(
        &findings,
        "a package says what it reads, writes, may cost and never does",
    );
}

#[test]
fn every_system_has_a_row() {
    let table = fs_err::read_to_string(tree::root().join("settings/SYSTEMS.md")).unwrap();
    let mut rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|name| *name != "system")
        .collect();
    let packages = packages();
    let mut systems: Vec<&str> = packages
        .iter()
        .filter(|package| package.is_system())
        .map(|package| package.name.as_str())
        .collect();
    rows.sort_unstable();
    systems.sort_unstable();
    assert_eq!(rows, systems, "settings/SYSTEMS.md has one row a system");
}

#[test]
fn scripts_parse() {
    let mut findings = Vec::new();
    let mut seen = 0;
    for file in tree::files() {
        let is_named_so = file.path.ends_with(".sh");
        if !file.text.starts_with("#!/bin/sh") && !is_named_so {
            continue;
        }
        seen += 1;
        let status = Command::new("sh")
            .arg("-n")
            .arg(tree::root().join(&file.path))
            .stdin(Stdio::null())
            .status()
            .unwrap();
        if !status.success() {
            findings.push(file.path);
        }
    }
    assert!(seen >= 4, "only {seen} scripts were found");
    assert_none(&findings, "sh -n");
}
