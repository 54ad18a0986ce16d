//! Pages that can drift from the code are compared with it: every test, path,
//! key, event and word that they name is there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use shared::edge::config::Config;

const ROOMS: [&str; 6] = ["shared/", "hooks/", "fleet/", "settings/", "tests/", "docs/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    fs_err::read_to_string(root().join(name)).unwrap()
}

/// README.md and every page of docs.
fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned()];
    for entry in fs_err::read_dir(root().join("docs")).unwrap() {
        names.push(format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
    }
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), page(&name)))
        .collect()
}

/// What stands in backticks, code blocks left out.
fn quoted(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// The section under a heading, up to the next one of any level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n{heading}\n")).unwrap();
    rest.split_once("\n#").map_or(rest, |(section, _)| section)
}

/// The cells of a table's rows, without its head.
fn rows(section: &str) -> Vec<Vec<String>> {
    let lines = section.lines().filter(|line| line.starts_with("| "));
    lines
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells
                .map(|cell| cell.trim_matches([' ', '|']).to_owned())
                .collect()
        })
        .skip(1)
        .collect()
}

/// Every source file and the file of cases, by path from the root.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = ROOMS.iter().map(|room| root().join(room)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if has_ending(&name, "rs") || name.ends_with("/session-failures.jsonl") {
                found.insert(name, fs_err::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|own| own == ending)
}

/// Whether a file holds a test (or, in the file of cases, a case) of that name.
fn holds(file: &str, text: &str, name: &str) -> bool {
    if has_ending(file, "jsonl") {
        let case = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        return text
            .lines()
            .any(|line| case(line).get("id").and_then(Value::as_str) == Some(name));
    }
    let head = format!("fn {name}() {{");
    let mut lines = text.lines().map(str::trim);
    let mut is_test = false;
    lines.any(|line| {
        let found = is_test && line == head;
        is_test = line == "#[test]" || (is_test && line.starts_with('#'));
        found
    })
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let sources = sources();
    for (name, least) in [("docs/incidents.md", 60), ("docs/claude-code-facts.md", 30)] {
        let mut count = 0;
        for quote in quoted(&page(name)) {
            let Some((file, test)) = quote.split_once("::").filter(|(file, _)| file.contains('.')) else {
                continue;
            };
            let end = format!("/{file}");
            let is_there = sources
                .iter()
                .any(|(path, text)| path.ends_with(&end) && holds(path, text, test));
            assert!(is_there, "{name} names {quote}, which is nowhere");
            count += 1;
        }
        assert!(count >= least, "{name} names only {count} tests");
    }
}

#[test]
fn every_incident_that_is_caught_names_its_test() {
    let text = page("docs/incidents.md");
    let (caught, _) = text.split_once("## No test here yet").unwrap();
    let reports = caught
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('#'));
    for line in reports {
        assert!(line.contains("::"), "no test: {line}");
    }
}

#[test]
fn every_path_and_link_of_a_page_leads_somewhere() {
    let mut count = 0;
    for (name, text) in pages() {
        for quote in quoted(&text) {
            let is_path = ROOMS.iter().any(|room| quote.starts_with(room)) && !quote.contains(['<', ' ']);
            if is_path {
                assert!(root().join(&quote).exists(), "{name} names {quote}");
                count += 1;
            }
        }
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let here = root().join(&name).parent().unwrap().join(target);
                assert!(here.exists(), "{name} links to {target}");
            }
        }
    }
    assert!(count > 50, "only {count} paths were looked at");
}

#[test]
fn the_documented_keys_are_those_of_the_config() {
    let text = page("docs/files-and-events.md");
    let documented: BTreeMap<String, Value> = rows(section(&text, "## config.json"))
        .iter()
        .map(|row| {
            let [key, default, ..] = row.as_slice() else {
                panic!("{row:?}")
            };
            let default = serde_json::from_str(default.trim_matches('`')).unwrap();
            (key.trim_matches('`').to_owned(), default)
        })
        .collect();
    let config = serde_json::to_value(Config::default()).unwrap();
    let config: BTreeMap<String, Value> = config.as_object().unwrap().clone().into_iter().collect();
    assert_eq!(documented, config);
}

#[test]
fn the_documented_events_are_those_registered() {
    let text = page("docs/files-and-events.md");
    let documented: BTreeMap<String, (Vec<String>, u64)> = rows(section(&text, "## Events"))
        .iter()
        .map(|row| {
            let [event, programs, timeout] = row.as_slice() else {
                panic!("{row:?}")
            };
            let event = event.trim_matches('`').to_owned();
            (event, (quoted(programs), timeout.parse().unwrap()))
        })
        .collect();
    let registered: Value = serde_json::from_str(&page("settings/hooks.json")).unwrap();
    let mut expected = BTreeMap::new();
    for (event, groups) in registered["hooks"].as_object().unwrap() {
        let hooks = groups[0]["hooks"].as_array().unwrap();
        let name = |hook: &Value| hook["command"].as_str().unwrap().replace("{{bin}}/", "");
        let timeouts: BTreeSet<u64> = hooks
            .iter()
            .map(|hook| hook["timeout"].as_u64().unwrap())
            .collect();
        assert_eq!(timeouts.len(), 1, "{event}");
        let programs: Vec<String> = hooks.iter().map(name).collect();
        expected.insert(event.clone(), (programs, *timeouts.first().unwrap()));
    }
    assert_eq!(documented, expected);
}

/// Kinds of failure and states of signals are words of the code.
#[test]
fn the_documented_words_are_those_of_the_code() {
    let text = page("docs/files-and-events.md");
    let sources = sources();
    let said = |word: &str, rooms: &[&str]| {
        let word = format!("\"{word}\"");
        sources
            .iter()
            .any(|(path, text)| rooms.iter().any(|room| path.starts_with(room)) && text.contains(&word))
    };
    let kinds = section(&text, "## `rungs diagnose`");
    let (_, kinds) = kinds.split_once("`kind` by verdict:").unwrap();
    let (kinds, _) = kinds.split_once("\nA `wedge`").unwrap();
    let kinds: Vec<String> = kinds
        .lines()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, kinds)| quoted(kinds))
        .collect();
    assert!(kinds.len() > 50, "{kinds:?}");
    for kind in kinds {
        assert!(said(&kind, &["shared/src/pure/"]), "no kind {kind}");
    }
    let states = rows(section(&text, "## Signals"));
    assert!(states.len() >= 6, "{states:?}");
    for row in states {
        let state = row.first().unwrap().trim_matches('`');
        assert!(
            said(state, &["hooks/", "shared/src/restart/"]),
            "no signal {state}"
        );
    }
}
