//! What must never be written down here: secrets that could be real, and what
//! only the machine or the day of its making could understand.

use crate::assert_none;
use crate::tree::{self, File};

/// Hosts that a text may name. Anything else is a machine of somebody's own, or a
/// package registry.
const HOSTS: [&str; 14] = [
    "github.com",
    "rustup.rs",
    "claude.ai",
    "www.anthropic.com",
    "api.anthropic.com",
    "console.anthropic.com",
    "docs.anthropic.com",
    "code.claude.com",
    "platform.claude.com",
    "status.claude.com",
    "example.test",
    "example.com",
    "localhost",
    "127.0.0.1",
];

/// Findings of lines for which `is_bad` gives what is bad in them.
fn lines(looks_at: impl Fn(&File) -> bool, is_bad: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree::files().iter().filter(|file| looks_at(file)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(what) = is_bad(line) {
                findings.push(format!("{}:{}: {what}", file.path, number + 1));
            }
        }
    }
    findings
}

/// Every run of characters of `kind` that begins with `start`.
fn runs<'l>(line: &'l str, start: &str, kind: impl Fn(char) -> bool) -> Vec<&'l str> {
    line.match_indices(start)
        .map(|(at, _)| {
            let rest = line.get(at..).unwrap_or_default();
            let end = rest
                .char_indices()
                .find(|(index, c)| *index >= start.len() && !kind(*c))
                .map_or(rest.len(), |(index, _)| index);
            rest.get(..end).unwrap_or_default()
        })
        .collect()
}

#[test]
fn texts_name_public_hosts_only() {
    let findings = lines(
        |_| true,
        |line| {
            let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
            let mut hosts = runs(line, "://", is_host).into_iter();
            let host = hosts.find(|run| {
                let host = run.trim_start_matches("://").trim_end_matches(['.', '-']);
                !host.is_empty() && !HOSTS.contains(&host)
            });
            host.map(str::to_owned)
        },
    );
    assert_none(&findings, "a host that not everybody has");
}

#[test]
fn texts_are_for_everybody() {
    // In two halves, so that this list is not its own finding.
    let words = [
        ("/wo", "rk/"),
        ("/tmp/br", "ief"),
        ("requirements", ".md"),
        ("style", ".md"),
        ("facts/client", "-contract"),
        ("issues sh", "ow"),
        ("npmjs", ".org"),
        ("pypi", ".org"),
        ("crates.io", "/api"),
    ]
    .map(|(one, other)| format!("{one}{other}"));
    let findings = lines(
        |_| true,
        |line| {
            let low = line.to_ascii_lowercase();
            words.iter().find(|word| low.contains(*word)).cloned()
        },
    );
    assert_none(&findings, "only its makers would understand this");
}

#[test]
fn numbers_of_reports_are_public_ones() {
    let findings = lines(
        |file| !file.is_fixture() && !file.path.ends_with(".lock"),
        |line| {
            let low = line.to_ascii_lowercase();
            let mut runs = runs(&low, concat!("iss", "ue "), |c| c == '#' || c.is_ascii_digit()).into_iter();
            runs.find(|run| run.ends_with(|c: char| c.is_ascii_digit()))
                .map(str::to_owned)
        },
    );
    assert_none(&findings, "cite a public report: owner/repository#number");
}

/// Whether a text that looks like a secret says that it is none.
fn is_made_up(secret: &str) -> bool {
    let low = secret.to_ascii_lowercase();
    low.contains("fake") || low.contains("mock")
}

/// A text in the form of a secret.
fn secret(line: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let starts = [
        ("sk-a", "nt-", 16),
        ("gh", "p_", 20),
        ("github_", "pat_", 20),
        ("AK", "IA", 16),
        ("xox", "b-", 16),
        ("ey", "J", 40),
        ("PRIVATE ", "KEY-----", 0),
    ];
    starts.into_iter().find_map(|(one, other, length_min)| {
        let start = format!("{one}{other}");
        runs(line, &start, is_word)
            .into_iter()
            .find(|run| run.len() >= start.len() + length_min && !is_made_up(run))
            .map(|run| run.chars().take(start.len() + 4).collect())
    })
}

#[test]
fn no_secret_looks_real() {
    assert_none(&lines(|_| true, secret), "made-up logins say FAKE");
}

#[test]
fn a_secret_would_be_found() {
    let real = format!("{{\"key\":\"sk-{}-api03-{}\"}}", "ant", "x9".repeat(20));
    assert!(secret(&real).is_some());
    assert!(secret(&real.replace("api03", "FAKE")).is_none());
    assert!(secret("sk-a tail of words").is_none());
}
