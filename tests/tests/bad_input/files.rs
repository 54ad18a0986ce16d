//! Transcripts and state files in every bad shape.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::stage::{PROMPT, SID, Stage, of_session};
use crate::table::Cell::{Logs, Silent, Sleeps, Tells, Works, WorksAndLogs};
use crate::table::{Cell, Row, check, row};

/// What the hooks do without a transcript: the client's own continuation goes
/// through, and the heals go by the payload of a turn that the lease shows.
const WITHOUT_TRANSCRIPT: [Cell; 4] = [
    WorksAndLogs("unknown whether the session went on"),
    Works,
    Works,
    WorksAndLogs("by the payload alone"),
];

fn transcript(name: &'static str, cells: [Cell; 4], prepare: impl Fn(&mut Stage) + Sync + 'static) -> Row {
    row(name, cells, move |stage| {
        stage.native_continuation();
        prepare(stage);
    })
}

fn fifo(path: &std::path::Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn transcripts() {
    check(&[
        transcript("good", [Works; 4], |_| {}),
        transcript("missing", WITHOUT_TRANSCRIPT, |stage| {
            fs_err::remove_file(stage.transcript()).unwrap();
        }),
        transcript("a folder", WITHOUT_TRANSCRIPT, |stage| {
            fs_err::remove_file(stage.transcript()).unwrap();
            fs_err::create_dir(stage.transcript()).unwrap();
        }),
        transcript("a fifo that nobody writes", WITHOUT_TRANSCRIPT, |stage| {
            fs_err::remove_file(stage.transcript()).unwrap();
            fifo(&stage.transcript());
        }),
        transcript("a device", WITHOUT_TRANSCRIPT, |stage| {
            fs_err::remove_file(stage.transcript()).unwrap();
            symlink("/dev/zero", stage.transcript()).unwrap();
        }),
        transcript("unreadable", WITHOUT_TRANSCRIPT, |stage| {
            stage.as_nobody = true;
            fs_err::set_permissions(stage.transcript(), PermissionsExt::from_mode(0o200)).unwrap();
        }),
        row(
            "client's register is a fifo",
            [Works, Works, Logs(""), Logs("")],
            |stage| {
                let register = stage
                    .path()
                    .join(format!("home/.claude/sessions/{}.json", stage.client_pid()));
                fs_err::remove_file(&register).unwrap();
                fifo(&register);
            },
        ),
        row(
            "a login is a fifo",
            [Works, Works, Sleeps("no account has room"), Works],
            |stage| {
                let login = stage.root().join("accounts/b/.credentials.json");
                fs_err::remove_file(&login).unwrap();
                fifo(&login);
            },
        ),
        transcript("path with a NUL", WITHOUT_TRANSCRIPT, |stage| {
            let path = format!("{}\0", stage.transcript().display());
            stage.set("transcript_path", json!(path));
            let config = stage.path().join("home/.claude");
            stage.env("CLAUDE_CONFIG_DIR", config);
        }),
        transcript(
            "empty file",
            [WorksAndLogs("shows no answer"), Works, Works, Works],
            |stage| {
                stage.write_transcript("");
            },
        ),
        transcript(
            "garbage",
            [WorksAndLogs("shows no answer"), Works, Works, Works],
            |stage| {
                fs_err::write(stage.transcript(), [0xff; 3000]).unwrap();
            },
        ),
        transcript("torn last line", [Works; 4], |stage| {
            stage.write_transcript(&(stage.failed_turn() + r#"{"type":"assistant","mess"#));
        }),
        transcript(
            "torn failure",
            [WorksAndLogs("shows no answer"), Works, Works, Works],
            |stage| {
                let text = stage.failed_turn();
                stage.write_transcript(&text[..text.len() - 20]);
            },
        ),
        transcript("1 GB", [Works; 4], |stage| {
            let mut file = fs_err::File::create(stage.transcript()).unwrap();
            file.seek(SeekFrom::Start(1 << 30)).unwrap();
            write!(file, "\n{}", stage.failed_turn()).unwrap();
        }),
        transcript("a line of 20 MB before the failure", [Works; 4], |stage| {
            let huge = json!({"type":"user","message":{"content":"x".repeat(20 << 20)}});
            stage.write_transcript(&format!("{huge}\n{}", stage.failed_turn()));
        }),
        transcript(
            "a line of 20 MB after the failure",
            [WorksAndLogs("shows no answer"), Works, Works, Works],
            |stage| {
                let huge = json!({"type":"attachment","data":"x".repeat(20 << 20)});
                stage.write_transcript(&format!("{}{huge}\n", stage.failed_turn()));
            },
        ),
    ]);
}

/// A state file with this content, which nobody may write over.
fn content(name: &'static str, file: fn() -> String, text: &'static str, cells: [Cell; 4]) -> Row {
    row(name, cells, move |stage| stage.freeze(&file(), text))
}

const NEWER: &str = r#"{"format":99,"state":{"of":"another form"},"text":7}"#;
const CORRUPT: &str = "{\"format\":1,\"st";

#[test]
fn corrupt_and_newer_state_files() {
    let goal = || format!("goals/{SID}.json");
    let pool = || "pool.json".to_owned();
    let wall = || of_session("wall.json");
    let wedge = || of_session("wedge.json");
    let gate = || of_session("gate.json");
    let outage = || "outage.json".to_owned();
    let config = || "config.json".to_owned();
    let episode = || of_session(&format!("episodes/{PROMPT}"));
    let taken = [
        Works,
        Works,
        Logs("has the episode"),
        Logs("another hook has this failure"),
    ];
    let defaults = [
        Works,
        Works,
        WorksAndLogs("defaults stand in"),
        Sleeps("defaults stand in"),
    ];
    let alone = [Works, Works, Works, WorksAndLogs("waits alone")];
    check(&[
        content(
            "goal: corrupt",
            goal,
            CORRUPT,
            [Works, Tells("can't be judged"), Works, Works],
        ),
        content(
            "goal: newer",
            goal,
            NEWER,
            [Works, Tells("can't be judged"), Works, Works],
        ),
        content(
            "goal: empty",
            goal,
            "",
            [Works, Tells("can't be judged"), Works, Works],
        ),
        content(
            "pool: corrupt",
            pool,
            CORRUPT,
            [Works, Works, Logs("pool.json is not understood"), Works],
        ),
        content(
            "pool: newer",
            pool,
            r#"{"format":99,"accounts":{}}"#,
            [Works, Works, Logs("pool.json has format 99"), Works],
        ),
        content(
            "wall: corrupt",
            wall,
            CORRUPT,
            [Works, Works, Logs("wall.json is not understood"), Works],
        ),
        content(
            "wall: newer",
            wall,
            r#"{"format":99}"#,
            [Works, Works, Logs("wall.json has format 99"), Works],
        ),
        content(
            "wedge: corrupt",
            wedge,
            CORRUPT,
            [Works, Works, Works, Logs("wedge.json is not understood")],
        ),
        content(
            "wedge: newer",
            wedge,
            r#"{"format":99}"#,
            [Works, Works, Works, Logs("wedge.json has format 99")],
        ),
        content(
            "gate: corrupt",
            gate,
            CORRUPT,
            [Works, Tells("can't be judged"), Works, Works],
        ),
        content(
            "gate: newer",
            gate,
            NEWER,
            [Works, Tells("can't be judged"), Works, Works],
        ),
        content("outage: corrupt", outage, CORRUPT, alone),
        content("outage: newer", outage, NEWER, alone),
        content("config: corrupt", config, CORRUPT, defaults),
        content("config: newer", config, NEWER, defaults),
        content("episode: corrupt", episode, CORRUPT, taken),
        content("episode: newer", episode, NEWER, taken),
        row("host note: corrupt", [Works; 4], |stage| {
            stage.put(&format!("hosts/{}.json", stage.client_pid()), CORRUPT);
        }),
        row(
            "host note: newer",
            [WorksAndLogs("hosts/"), Works, Works, Works],
            |stage| {
                let name = format!("hosts/{}.json", stage.client_pid());
                stage.freeze(&name, NEWER);
            },
        ),
        row("flips: corrupt", [Works; 4], |stage| {
            stage.put("flips.jsonl", "{\"format\"\n\n\x00");
        }),
        row("lease: corrupt", [Works; 4], |stage| {
            stage.put(&of_session("lease.jsonl"), "{\"format\":1,\"at\n\0\0\n[]\n");
        }),
        row("lease: newer", [Works; 4], |stage| {
            stage.put(&of_session("lease.jsonl"), format!("{NEWER}\n"));
        }),
        row("signals: newer", [Works; 4], |stage| {
            for rung in ["walled-heal", "wedge-heal"] {
                stage.freeze(&format!("signals/{SID}.{rung}.json"), NEWER);
            }
        }),
    ]);
}

#[test]
fn state_files_of_another_user() {
    let others = "belongs to another user";
    let given = |name: &'static str, file: fn() -> String, cells: [Cell; 4]| {
        row(name, cells, move |stage| stage.give_away(&file()))
    };
    check(&[
        given(
            "the goal",
            || format!("goals/{SID}.json"),
            [Works, Tells("can't be judged"), Works, Works],
        ),
        given(
            "the pool",
            || "pool.json".into(),
            [Works, Works, Logs(others), Works],
        ),
        given(
            "the lease",
            || of_session("lease.jsonl"),
            [Logs(others), Works, Logs(others), Logs(others)],
        ),
        row("the whole root", [Silent; 4], |stage| {
            stage.give_away("");
        }),
    ]);
}

#[test]
fn links_out_of_the_root() {
    let link = |name: &'static str, file: fn(&Stage) -> String, cells: [Cell; 4]| {
        row(name, cells, move |stage| {
            let name = file(stage);
            stage.link_out(&name);
        })
    };
    check(&[
        link(
            "the session's folder",
            |stage| {
                stage.put(&of_session("debug.log"), "x".repeat(300 << 10));
                format!("session/{SID}")
            },
            [
                Logs("failed"),
                Tells("can't be judged"),
                Logs("failed"),
                Logs("failed"),
            ],
        ),
        link(
            "all sessions' folder",
            |_| "session".into(),
            [
                Logs("failed"),
                Tells("can't be judged"),
                Logs("failed"),
                Logs("failed"),
            ],
        ),
        link(
            "the lease",
            |_| of_session("lease.jsonl"),
            [Logs("failed"), Works, Logs("failed"), Logs("failed")],
        ),
        link(
            "the episodes",
            |_| of_session("episodes"),
            [Works, Works, Logs("failed"), Logs("failed")],
        ),
        link(
            "the debug log",
            |stage| {
                let name = of_session("debug.log");
                stage.put(&name, "x".repeat(300 << 10));
                name
            },
            [Works; 4],
        ),
        link(
            "the goals",
            |_| "goals".into(),
            [Works, Tells("can't be judged"), Works, Works],
        ),
        link(
            "the goal",
            |_| format!("goals/{SID}.json"),
            [Works, Tells("can't be judged"), Works, Works],
        ),
        link(
            "the pool",
            |_| "pool.json".into(),
            [Works, Works, Logs("pool.json can't be read"), Works],
        ),
        link(
            "the flips",
            |stage| {
                stage.put("flips.jsonl", "");
                "flips.jsonl".into()
            },
            [Works; 4],
        ),
        link(
            "the hosts",
            |stage| {
                stage.put(&format!("hosts/{}.json", stage.client_pid()), "{}");
                "hosts".into()
            },
            [WorksAndLogs("could not be written"), Works, Works, Works],
        ),
        link(
            "the signals",
            |stage| {
                for rung in ["walled-heal", "wedge-heal"] {
                    stage.put(&format!("signals/{SID}.{rung}.json"), "{}");
                    stage.put(&format!("signals/{SID}.{rung}.json.seen"), "");
                }
                "signals".into()
            },
            [Works; 4],
        ),
        link(
            "the gate's latch",
            |stage| {
                let name = of_session("gate.json");
                stage.put(&name, "{\"format\":1}");
                name
            },
            [Works, Tells("can't be judged"), Works, Works],
        ),
        row(
            "the shard",
            [Works, Works, Sleeps("points outside the accounts"), Works],
            |stage| {
                let link = stage.root().join("shards/default");
                fs_err::remove_file(&link).unwrap();
                fs_err::create_dir(stage.outside().join("a")).unwrap();
                symlink(stage.outside().join("a"), link).unwrap();
            },
        ),
        link(
            "the pool's lock",
            |stage| {
                stage.put("pool.lock", "");
                "pool.lock".into()
            },
            [Works, Works, Logs("pool.lock can't be taken"), Works],
        ),
        link(
            "the accounts",
            |_| "accounts".into(),
            [Works, Works, Logs("the accounts can't be read"), Works],
        ),
    ]);
}
