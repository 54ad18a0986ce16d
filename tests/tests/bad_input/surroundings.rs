//! What surrounds a hook: its environment, its descriptors, the disk, the clock.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::stage::{Hook, PROMPT, SID, Stage};
use crate::table::Cell::{Logs, Silent, Sleeps, Works, WorksAndLogs};
use crate::table::{Cell, Row, check, row};

#[test]
fn roots_and_disks() {
    check(&[
        row("no home and no root", [Silent; 4], |stage| {
            stage.names_root = false;
            stage.env.remove("HOME");
        }),
        row("an empty home and no root", [Silent; 4], |stage| {
            stage.names_root = false;
            stage.env("HOME", "");
        }),
        row("root is a file", [Silent; 4], |stage| {
            fs_err::remove_dir_all(stage.root()).unwrap();
            fs_err::write(stage.root(), "mine").unwrap();
        }),
        row("root can't be written", [Silent; 4], |stage| {
            stage.as_nobody = true;
            for folder in [String::new(), format!("session/{SID}")] {
                let path = stage.root().join(folder);
                fs_err::set_permissions(path, PermissionsExt::from_mode(0o555)).unwrap();
            }
            let lease = stage.root().join(format!("session/{SID}/lease.jsonl"));
            fs_err::set_permissions(lease, PermissionsExt::from_mode(0o444)).unwrap();
        }),
        row("root can't be looked into", [Silent; 4], |stage| {
            stage.as_nobody = true;
            fs_err::set_permissions(stage.root(), PermissionsExt::from_mode(0o000)).unwrap();
        }),
        // A full disk as every user can have it: no file may grow. (A state file
        // can't be /dev/full, and a small file system needs a mount.)
        row("no file may grow", [Silent; 4], |stage| {
            stage.before = "ulimit -f 0;";
        }),
    ]);
}

/// walled-heal has std's own start, which opens /dev/null in its place.
const NO_PAYLOAD: [Cell; 4] = [
    Logs("the payload can't be read"),
    Logs("the payload can't be read"),
    Logs("the payload is not understood"),
    Logs("the payload can't be read"),
];

#[test]
fn descriptors() {
    check(&[
        row("stdin closed", NO_PAYLOAD, |stage| stage.redirect = "<&-"),
        row("stdout closed", [Works; 4], |stage| stage.redirect = ">&-"),
        row("stderr closed", [Works; 4], |stage| stage.redirect = "2>&-"),
        row("stdout and stderr closed", [Works; 4], |stage| {
            stage.redirect = ">&- 2>&-";
        }),
        row("all closed", NO_PAYLOAD, |stage| {
            stage.redirect = "<&- >&- 2>&-";
        }),
        row("the reader of stdout is gone", [Works; 4], |stage| {
            stage.reader_is_gone = true;
        }),
        row("stdout is full", [Works; 4], |stage| {
            stage.redirect = "1>&- 1>/dev/full";
        }),
    ]);
}

/// An hour ahead: what was written before the clock was set back.
fn later() -> i64 {
    shared::edge::clock::now_ms() + 3_600_000
}

#[test]
fn clock_set_back() {
    let lines = |stage: &Stage, lines: &[serde_json::Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        stage.put(&format!("session/{SID}/lease.jsonl"), text);
    };
    check(&[
        row("lease of later", [Works; 4], move |stage| {
            lines(
                stage,
                &[
                    json!({"format":1,"at":later(),"event":"start"}),
                    json!({"format":1,"at":later() + 1000,"event":"prompt","prompt_id":PROMPT}),
                ],
            );
        }),
        // Nobody can tell it from a prompt that came since: hands off.
        row(
            "another prompt of later",
            [
                Works,
                Works,
                Logs("another prompt came since"),
                Logs("another prompt came since"),
            ],
            move |stage| {
                lines(
                    stage,
                    &[json!({"format":1,"at":later(),"event":"prompt","prompt_id":"p9"})],
                );
            },
        ),
        row("flip of later", [Works; 4], |stage| {
            let flip = json!({"format":1,"at":later(),"shard":"default","from":"b","to":"a","cause":"wall"});
            stage.put("flips.jsonl", format!("{flip}\n"));
        }),
        row("wall of later, over by now", [Works; 4], |stage| {
            let wall = json!({"seen_at":later(),"resets_at":later() / 1000 - 7200});
            let pool = json!({"format":1,"order":["a","b"],"accounts":{"b":{"walls":{"five_hour":wall}}}});
            stage.put("pool.json", pool.to_string());
        }),
        row("walls of the end of time", [Works; 4], |stage| {
            let wall = json!({"seen_at":i64::MAX,"resets_at":i64::MAX});
            let pool = json!({"format":1,"order":["c","a","b"],
                "accounts":{"c":{"walls":{"five_hour":wall}}}});
            stage.put("pool.json", pool.to_string());
            let login = stage.root().join("accounts/b/.credentials.json");
            stage.put("accounts/c/.credentials.json", fs_err::read(login).unwrap());
        }),
        row("tally of later", [Works; 4], |stage| {
            let wedge = json!({"format":1,"transient_wakes":[later()],"wakes":[later()]});
            stage.put(&format!("session/{SID}/wedge.json"), wedge.to_string());
        }),
        row("outage of later", [Works; 4], |stage| {
            let outage = json!({"format":1,"failed_at":later(),"recovered_at":later(),
                "probe":{"sid":"x","pid":1,"start":1,"at":later()}});
            stage.put("outage.json", outage.to_string());
        }),
        row("gate's latch of later", [Works; 4], |stage| {
            stage.put(
                &format!("session/{SID}/gate.json"),
                json!({"format":1,"held_at":later()}).to_string(),
            );
        }),
    ]);
}

fn variable(name: &'static str, variable: &'static str, value: &'static [u8], cells: [Cell; 4]) -> Row {
    row(name, cells, move |stage| {
        stage.env(variable, std::ffi::OsString::from_vec(value.to_vec()));
    })
}

#[test]
fn environment() {
    let no_pid = [Works, Works, Logs("not waked"), Logs("left alone")];
    let no_shard = [Works, Works, Sleeps("none of ours"), Works];
    check(&[
        variable("pid is no number", "CLAUDE_PID", b"seven", no_pid),
        variable("pid is empty", "CLAUDE_PID", b"", no_pid),
        variable("pid is huge", "CLAUDE_PID", b"99999999999999999999", no_pid),
        variable("pid is negative", "CLAUDE_PID", b"-1", no_pid),
        variable("pid is zero", "CLAUDE_PID", b"0", no_pid),
        variable("pid is not UTF-8", "CLAUDE_PID", b"\xff1", no_pid),
        variable("pid of nobody", "CLAUDE_PID", b"2147483647", no_pid),
        variable("pid of another program", "CLAUDE_PID", b"1", no_pid),
        variable(
            "store with a line end",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            b"/a\nb",
            no_shard,
        ),
        variable(
            "store is relative",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            b"shards/default",
            no_shard,
        ),
        variable(
            "store is outside",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            b"/nowhere/shards/default",
            no_shard,
        ),
        variable(
            "store is not UTF-8",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            b"/\xff/\xff",
            no_shard,
        ),
        variable("store is empty", "CLAUDE_SECURESTORAGE_CONFIG_DIR", b"", no_shard),
        row("store with a shard of no name", no_shard, |stage| {
            let store = stage.root().join("shards/..");
            stage.env("CLAUDE_SECURESTORAGE_CONFIG_DIR", store);
        }),
        row("store with a shard that is not there", no_shard, |stage| {
            let store = stage.root().join("shards/a\nb");
            stage.env("CLAUDE_SECURESTORAGE_CONFIG_DIR", store);
        }),
        row("tmux is dead", [Works, Works, Works, Logs("")], |stage| {
            stage.env("TMUX", "/nowhere/tmux,1,0");
            stage.env("TMUX_PANE", "%999");
            if stage.hook == Hook::Wedge {
                // A failure that asks for a restart, so that tmux is looked at.
                stage.set("error", json!("invalid_request"));
                stage.set("error_details", json!("400 messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."));
                stage.set("last_assistant_message", json!("API Error: 400"));
                fs_err::remove_file(stage.transcript()).unwrap();
            }
        }),
        row("time zone is garbage", [Works; 4], |stage| {
            stage.env("TZ", "../../etc/passwd\n");
        }),
        row("home is not UTF-8", [Works; 4], |stage| {
            stage.env("HOME", std::ffi::OsString::from_vec(b"/\xff".to_vec()));
        }),
    ]);
}

#[test]
fn a_cell_can_fail() {
    // The stage notices: a hook that says nothing where it should work.
    let mut stage = Stage::new(Hook::Gate);
    fs_err::remove_file(stage.root().join(format!("goals/{SID}.json"))).unwrap();
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stage.check(WorksAndLogs("hold"));
    }));
    assert!(noticed.is_err());
}
