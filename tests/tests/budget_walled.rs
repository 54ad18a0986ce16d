//! A wake on a wall has to be quick: its own work, from start to exit, counted as
//! processor time and as instructions, and the same for any length of transcript.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::env;
use std::process::{Command, Stdio};

use tests::walled_stage::WalledStage;

/// The most that one wake may take of a processor, in ms.
const OWN_WORK_MS: u64 = 60;

/// The most user instructions of one wake. 3.3 million were counted when this was
/// written (a window of 256 KB is read and parsed); more than twice that is a regression.
const INSTRUCTIONS: u64 = 8_000_000;

const RUNS: u64 = 20;

/// Processor time of this process's ended children, in clock ticks of 10 ms.
fn children_ticks() -> u64 {
    let stat = fs_err::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    // cutime and cstime are fields 16 and 17; the first after the name is 3.
    fields
        .skip(13)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

fn wake(stage: &WalledStage, before: &[&str]) -> String {
    stage.set_back();
    let output = stage.run(before);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said.contains("moved from the account 'A' to 'B'"), "{said}");
    assert_eq!(stage.account(), "B");
    said
}

#[test]
fn a_wake_on_a_weekly_wall_is_quick() {
    let stage = WalledStage::new(500 << 20);
    let before = children_ticks();
    for _ in 0..RUNS {
        wake(&stage, &[]);
    }
    let own_work_ms = (children_ticks() - before) * 10 / RUNS;
    eprintln!("walled-heal: {own_work_ms} ms of its own work a wake, over {RUNS} runs");
    assert!(own_work_ms <= OWN_WORK_MS, "{own_work_ms} ms");
}

#[test]
fn a_wake_costs_the_same_for_any_transcript() {
    let has_valgrind = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if has_valgrind.is_err() || env::var_os("RUNGS_BIN_DIR").is_none() {
        assert!(
            env::var_os("CI").is_none_or(|ci| ci.is_empty()),
            "valgrind and the release build are needed"
        );
        eprintln!("SKIPPED: walled-heal was not counted: valgrind or the release build is missing");
        return;
    }
    let [small, large] = [400 << 10, 500 << 20].map(|bytes| {
        let stage = WalledStage::new(bytes);
        let said = wake(
            &stage,
            &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
        );
        let count = said
            .split_once("Collected : ")
            .unwrap()
            .1
            .split_whitespace()
            .next()
            .unwrap();
        count.parse::<u64>().unwrap()
    });
    eprintln!("walled-heal: {small} instructions a wake; with a transcript of 500 MB {large}");
    assert!(small.max(large) <= INSTRUCTIONS, "{small} {large}");
    // Ids and times in file names differ between runs, by a few hundredths.
    assert!(small.abs_diff(large) * 20 <= small, "{small} {large}");
}
