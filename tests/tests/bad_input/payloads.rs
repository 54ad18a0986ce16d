//! Payloads that are none, and ids that are no ids.

use serde_json::json;

use crate::stage::Hook;
use crate::table::Cell::{Logs, Works};
use crate::table::{Row, check, row};

fn raw(name: &'static str, bytes: impl Fn(&str) -> Vec<u8> + Sync + 'static) -> Row {
    row(name, [Logs("the payload is not understood"); 4], move |stage| {
        stage.raw = Some(bytes(&stage.payload.to_string()));
    })
}

fn id(name: &'static str, sid: String) -> Row {
    row(name, [Logs("names no usable session id"); 4], move |stage| {
        stage.set("session_id", json!(sid));
    })
}

#[test]
fn payloads() {
    check(&[
        row("nothing wrong", [Works; 4], |_| {}),
        raw("empty", |_| Vec::new()),
        raw("white space", |_| b" \n\t".to_vec()),
        raw("truncated", |good| good.as_bytes()[..good.len() / 2].to_vec()),
        raw("truncated by one byte", |good| {
            good.as_bytes()[..good.len() - 1].to_vec()
        }),
        raw("not UTF-8", |good| {
            good.replace("project", "\u{fffd}")
                .into_bytes()
                .iter()
                .map(|byte| if *byte == 0xef { 0xff } else { *byte })
                .collect()
        }),
        raw("NUL bytes", |_| vec![0; 4096]),
        raw("an array", |good| format!("[{good}]").into_bytes()),
        raw("a number", |_| b"7".to_vec()),
        raw("a string", |_| b"\"Stop\"".to_vec()),
        raw("null", |_| b"null".to_vec()),
        raw("two objects", |good| format!("{good}\n{good}\n").into_bytes()),
        raw("a field twice", |good| {
            good.replacen('{', "{\"session_id\":\"x\",", 1).into_bytes()
        }),
        raw("nested without end", |_| b"{\"a\":".repeat(200_000)),
        row("10 MB", [Works; 4], |stage| {
            stage.set("new_field", json!("x".repeat(10 << 20)));
        }),
        row("40 MB", [Logs("is larger than"); 4], |stage| {
            stage.set("new_field", json!("x".repeat(40 << 20)));
        }),
        row("unknown fields", [Works; 4], |stage| {
            stage.set("new_field", json!({"a": [1, null, {"b": 1e300}]}));
        }),
        row(
            "wrong type: session_id",
            [Logs("the payload is not understood"); 4],
            |stage| {
                stage.set("session_id", json!(7));
            },
        ),
        row(
            "wrong type: hook_event_name",
            [Logs("the payload is not understood"); 4],
            |stage| {
                stage.set("hook_event_name", json!(["Stop"]));
            },
        ),
        row(
            "wrong type: background_tasks",
            [Logs("the payload is not understood"); 4],
            |stage| {
                stage.set("background_tasks", json!({"id": 1}));
            },
        ),
        row(
            "wrong type: prompt_id",
            [Logs("the payload is not understood"); 4],
            |stage| {
                stage.set("prompt_id", json!({}));
            },
        ),
    ]);
}

#[test]
fn ids() {
    check(&[
        id("sid with /", "a/b".into()),
        id("sid ..", "..".into()),
        id("sid that climbs", "../../outside/x".into()),
        id("absolute sid", "/etc".into()),
        id("sid with NUL", "a\0b".into()),
        id("sid with a line end", "a\nb".into()),
        id("sid of 300 characters", "a".repeat(300)),
        id("empty sid", String::new()),
        row("missing sid", [Logs("names no usable session id"); 4], |stage| {
            stage.payload.as_object_mut().unwrap().remove("session_id");
        }),
        row(
            "prompt id that climbs",
            [
                Works,
                Works,
                Logs("no usable prompt id"),
                Logs("did not name the turn"),
            ],
            |stage| stage.set("prompt_id", json!("../../../outside/x")),
        ),
        row(
            "prompt id of 300 characters",
            [
                Works,
                Works,
                Logs("no usable prompt id"),
                Logs("did not name the turn"),
            ],
            |stage| stage.set("prompt_id", json!("p".repeat(300))),
        ),
        row(
            "missing event",
            [
                Logs("names no event"),
                Logs(""),
                Logs("not mine"),
                Logs("not mine"),
            ],
            |stage| {
                stage.payload.as_object_mut().unwrap().remove("hook_event_name");
            },
        ),
        row(
            "another hook's event",
            [
                Logs("no work for the event"),
                Logs(""),
                Logs("not mine"),
                Logs("not mine"),
            ],
            |stage| {
                let event = if stage.hook == Hook::Lease {
                    "Dance"
                } else {
                    "SessionStart"
                };
                stage.set("hook_event_name", json!(event));
            },
        ),
    ]);
}
