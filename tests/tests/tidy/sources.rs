//! Where effects live, and how long files and functions get.

use std::path::Path;

use crate::assert_none;
use crate::tree::{self, File};

/// The most lines of a file, its unit tests apart.
const FILE_LINES_MAX: usize = 600;

/// The same for a file of tests alone.
const TEST_FILE_LINES_MAX: usize = 900;

/// Longer files, each with its reason.
const LONG_FILES: [(&str, &str); 2] = [
    (
        "shared/src/pure/failure.rs",
        "one order of kinds from narrow to wide, read top to bottom",
    ),
    (
        "shared/src/pure/transcript.rs",
        "all that is known of the client's transcript lines",
    ),
];

/// The most lines of code of a function, without blank lines and comments. Tests
/// are often tables and may be longer.
const FUNCTION_LINES_MAX: usize = 70;

/// Longer functions, each with its reason.
const LONG_FUNCTIONS: [(&str, &str); 2] = [
    ("run", "the frame of a hook, step by step"),
    (
        "persons_business",
        "a list of sentences and what they ask of a person",
    ),
];

/// Findings of lines that hold one of `marks`, in files that `looks_at` picks.
fn mentions(marks: &[&str], looks_at: impl Fn(&File) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree::rust().filter(|file| looks_at(file)) {
        for (number, line) in file.lines_without_tests().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("//")
                && let Some(mark) = marks.iter().find(|mark| code.contains(*mark))
            {
                findings.push(format!("{}:{}: {mark}", file.path, number + 1));
            }
        }
    }
    findings
}

#[test]
fn pure_code_sees_no_clock_file_or_environment() {
    let marks = [
        "crate::edge",
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::thread",
        "SystemTime",
        "Instant",
        "fs_err",
        "rustix",
        "libc::",
    ];
    let findings = mentions(&marks, |file| file.path.starts_with("shared/src/pure/"));
    assert_none(&findings, "shared/src/pure decides from its arguments alone");
}

#[test]
fn each_effect_has_one_home() {
    let homes: [(&[&str], &str); 3] = [
        (
            &["env::var(", "env::var_os(", "env::vars"],
            "shared/src/edge/env.rs",
        ),
        (&["Command::new("], "shared/src/edge/spawn.rs"),
        (&["SystemTime::now("], "shared/src/edge/clock.rs"),
    ];
    for (marks, home) in homes {
        let findings = mentions(marks, |file| file.path != home && !file.is_test());
        assert_none(&findings, &format!("only {home} may do this"));
        assert!(
            !mentions(marks, |file| file.path == home).is_empty(),
            "{home} has moved"
        );
    }
}

#[test]
fn files_stay_short() {
    let mut findings = Vec::new();
    for file in tree::rust() {
        let count = file.lines_without_tests().count();
        let most = if file.is_test() {
            TEST_FILE_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        let is_exempt = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        if count > most && !is_exempt {
            findings.push(format!("{}: {count} lines", file.path));
        }
    }
    assert_none(
        &findings,
        &format!(
            "files have at most {FILE_LINES_MAX} lines, of tests {TEST_FILE_LINES_MAX}, or stand in LONG_FILES"
        ),
    );
}

/// The functions of a file with their lines of code.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = function_name(code).filter(|_| !code.ends_with([';', '}'])) else {
            continue;
        };
        let end = format!("{}}}", line.strip_suffix(code).unwrap_or_default());
        let count = lines
            .iter()
            .skip(start + 1)
            .take_while(|line| !line.starts_with(&end))
            .map(|line| line.trim_start())
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        functions.push((name.to_owned(), count + 2));
    }
    functions
}

/// The name in the first line of a function.
fn function_name(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let is_head = before
        .split_whitespace()
        .all(|word| word.starts_with("pub") || ["const", "unsafe", "extern", "\"C\""].contains(&word));
    let name = after.split(['(', '<']).next()?;
    (is_head && !name.is_empty()).then_some(name)
}

#[test]
fn functions_stay_short() {
    let mut findings = Vec::new();
    let mut seen = 0;
    for file in tree::rust().filter(|file| !file.is_test()) {
        let code: Vec<&str> = file.lines_without_tests().collect();
        for (name, count) in functions(&code.join("\n")) {
            seen += 1;
            let is_exempt = LONG_FUNCTIONS.iter().any(|(exempt, _)| *exempt == name);
            if count > FUNCTION_LINES_MAX && !is_exempt {
                findings.push(format!("{}: {name}: {count} lines", file.path));
            }
        }
    }
    assert!(seen > 500, "only {seen} functions were found");
    assert_none(
        &findings,
        &format!("functions have at most {FUNCTION_LINES_MAX} lines, or stand in LONG_FUNCTIONS"),
    );
}

#[test]
fn the_reader_of_functions_reads_functions() {
    let text = "impl X {\n    pub(crate) fn one<T>(\n        a: T,\n    ) -> T {\n        // why\n\n        a\n    }\n}\nfn two() {}\n";
    assert_eq!(functions(text), [("one".to_owned(), 5)]);
}

#[test]
fn nothing_is_left_over() {
    let marks = ["TO_DO", "FIX_ME", "XX_X", "DO_NOT_SUBMIT"].map(|mark| mark.replacen('_', "", 1));
    let mut findings = Vec::new();
    for file in tree::files().iter().filter(|file| !file.is_fixture()) {
        for (number, line) in file.text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
            if words.any(|word| marks.iter().any(|mark| mark == word)) || line.contains(concat!("dbg", "!("))
            {
                findings.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert_none(&findings, "do it, or say in the docs that it is not there");
}

#[test]
fn every_module_tells_its_problem() {
    let mut findings = Vec::new();
    for file in tree::rust() {
        let name = Path::new(&file.path).file_stem().unwrap().to_str().unwrap();
        let is_unit_tests = file.is_test() && !file.path.starts_with("tests/") && name.ends_with("tests");
        if !file.text.starts_with("//!") && !is_unit_tests {
            findings.push(file.path);
        }
    }
    assert_none(&findings, "a source file begins with its module doc");
}
