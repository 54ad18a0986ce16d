//! Install then uninstall gives back the identical bytes: by table over messy
//! files, and by a seeded generator over files nobody thought of.

use super::*;

const HOOKS_TEXT: &str = r#"{"hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "/p/bin/drive-gate", "args": ["--root", "/r"], "timeout": 10}]}],
    "StopFailure": [{"hooks": [
        {"type": "command", "command": "/p/bin/walled-heal", "args": ["--root", "/r"], "asyncRewake": true, "timeout": 2000000},
        {"type": "command", "command": "/p/bin/wedge-heal", "args": ["--root", "/r"], "asyncRewake": true, "timeout": 2000000}]}]
}}"#;

fn env() -> Vec<(String, String)> {
    vec![("SHARD".to_owned(), "/r/shards/default".to_owned())]
}

fn ours(env: &[(String, String)]) -> Ours<'_> {
    Ours { hooks: true, env }
}

fn all() -> String {
    additions(Some(HOOKS_TEXT), &env()).unwrap()
}

fn there_and_back(start: &str) -> String {
    let edited = put(start.as_bytes(), &all()).unwrap_or_else(|error| panic!("{start:?}: {error}"));
    let text = String::from_utf8(edited.bytes.clone()).unwrap();
    let root = parse(&text).unwrap_or_else(|error| panic!("{start:?} became {text:?}: {error}"));
    assert_eq!(our_hooks(&edited.bytes).unwrap().len(), 3, "{text}");
    assert!(holds(&edited.bytes, HOOKS_TEXT).unwrap());
    assert_eq!(
        root.get("env").unwrap().get("SHARD").unwrap().text(),
        Some("/r/shards/default")
    );
    let back = take(&edited.bytes, ours(&env()), &edited.before).unwrap();
    let expected = edited.before.blank.is_none().then(|| start.as_bytes().to_vec());
    assert_eq!(back, expected, "{start:?} became {text}");
    text
}

#[test]
fn messy_files_come_back_byte_for_byte() {
    let big = format!("{{\n  \"x\": [{}1]\n}}\n", "\"0123456789\",\n".repeat(100_000));
    for start in [
        "",
        "\n",
        "\u{feff}",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "  {\r\n\r\n}\r\n\r\n",
        "\u{feff}{\r\n\t\"model\": \"opus\"\r\n}",
        "{\"a\":1}",
        "{\"a\": 1, \"hooks\": {}}",
        "{\"hooks\":{\"Stop\":[]},\"env\":{}}",
        "{\"hooks\":{\"Stop\":[ ]},\"env\":{\n}}\n",
        "{\n    \"hooks\": {\n        \"Stop\": [\n        ]\n    },\n    \"env\": {\"A\": \"b\"}\n}",
        "{\n\t\"hooks\": {\n\t\t\"Stop\": [{\n\t\t\t\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]\n\t\t}]\n\t}\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"drive-gate\"}]}\n    ],\n    \"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]\n  },\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n",
        "{\"a\"\n:\n1\n,\n\"hooks\"\n:\n{\n}\n}",
        "{\n\"a\": 1\n, \"b\": 2\n, \"env\": {\"X\"   :   \"y\"   }\n}",
        big.as_str(),
    ] {
        there_and_back(start);
    }
}

#[test]
fn the_style_of_the_file_is_followed() {
    assert_eq!(
        there_and_back("{\"a\":1}"),
        "{\"a\":1,\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/p/bin/drive-gate\",\"args\":[\"--root\",\"/r\"],\"timeout\":10}]}],\"StopFailure\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/p/bin/walled-heal\",\"args\":[\"--root\",\"/r\"],\"asyncRewake\":true,\"timeout\":2000000},{\"type\":\"command\",\"command\":\"/p/bin/wedge-heal\",\"args\":[\"--root\",\"/r\"],\"asyncRewake\":true,\"timeout\":2000000}]}]},\"env\":{\"SHARD\":\"/r/shards/default\"}}"
    );
    let tabs = there_and_back("{\r\n\t\"a\": 1,\r\n\t\"env\": {\r\n\t\t\"X\": \"y\"\r\n\t}\r\n}\r\n");
    assert!(
        tabs.contains("\"X\": \"y\",\r\n\t\t\"SHARD\": \"/r/shards/default\"\r\n\t},\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\r\n\t\t\t\t\"hooks\": ["),
        "{tabs}"
    );
    assert!(!tabs.replace("\r\n", "").contains('\n'), "{tabs}");
}

#[test]
fn what_the_client_would_not_read_is_refused() {
    let all = all();
    let refusal = |text: &str| put(text.as_bytes(), &all).unwrap_err().to_string();
    assert_eq!(
        refusal("{\n  \"a\": 1, // mine\n}"),
        "not JSON: line 2, column 11: a comment; JSON has none (the client ignores such a file as a whole and runs no hook)"
    );
    assert!(refusal("{\"a\": 1,}").contains("a trailing comma"));
    assert_eq!(refusal("[]"), "/ must be an object");
    assert_eq!(refusal("{\"hooks\": []}"), "/hooks must be an object");
    assert_eq!(
        refusal("{\"hooks\": {\"Stop\": {}}}"),
        "/hooks/Stop must be an array"
    );
    assert_eq!(refusal("{\"a\": 1, \"a\": 2}"), "the key \"a\" stands twice");
    assert_eq!(
        refusal("{\"hooks\": {\"Stop\": [], \"Stop\": []}}"),
        "the key \"Stop\" stands twice"
    );
    assert_eq!(
        refusal("{\"env\": {\"SHARD\": \"/mine\"}}"),
        "/env/SHARD is already set to another value"
    );
    assert_eq!(put(b"{\"\xff\": 1}", &all).unwrap_err(), Refusal::NotUtf8(2));
}

#[test]
fn the_users_edits_in_between_stay() {
    let start = "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n";
    let edited = put(start.as_bytes(), &all()).unwrap();
    let text = String::from_utf8(edited.bytes).unwrap();
    // A key of their own, a group in our event, a handler in our group.
    let mine = text
        .replacen("{\n", "{\n  \"model\": \"opus\",\n", 1)
        .replacen(
            "\"Stop\": [\n",
            "\"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]},\n",
            1,
        )
        .replacen(
            "\"StopFailure\": [\n      {\n        \"hooks\": [\n",
            "\"StopFailure\": [\n      {\n        \"hooks\": [\n          {\"command\": \"also mine\"},\n",
            1,
        );
    assert_eq!(mine.matches("mine").count(), 2, "{mine}");
    let back = take(mine.as_bytes(), ours(&env()), &edited.before)
        .unwrap()
        .unwrap();
    assert_eq!(
        String::from_utf8(back).unwrap(),
        "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]}\n    ],\n    \"StopFailure\": [\n      {\n        \"hooks\": [\n          {\"command\": \"also mine\"}\n        ]\n      }\n    ]\n  }\n}\n"
    );
}

#[test]
fn a_changed_env_value_is_the_users_and_stays() {
    let edited = put(b"{}", &additions(None, &env()).unwrap()).unwrap();
    let mine = String::from_utf8(edited.bytes)
        .unwrap()
        .replace("/r/shards", "/elsewhere");
    let back = take(mine.as_bytes(), ours(&env()), &edited.before)
        .unwrap()
        .unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), mine);
    assert_eq!(
        env_value(mine.as_bytes(), "SHARD").unwrap().as_deref(),
        Some("/elsewhere/default")
    );
}

#[test]
fn older_entries_are_found_whatever_their_prefix() {
    let old = HOOKS_TEXT.replace("/p/bin", "/older/place");
    let edited = put(b"{\"a\": 1}", &old).unwrap();
    assert!(!holds(&edited.bytes, HOOKS_TEXT).unwrap());
    let back = take(&edited.bytes, ours(&[]), &Before::default())
        .unwrap()
        .unwrap();
    assert_eq!(back, b"{\"a\": 1}");
}

/// A small generator of settings files: valid JSON, any spacing.
struct Messy(u64);

impl Messy {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\n", "\n  ", "\r\n\t", "\t", "   "][usize::try_from(self.next(8)).unwrap()]
    }

    fn list(&mut self, brackets: (&str, &str), items: Vec<String>) -> String {
        let mut out = format!("{}{}", brackets.0, self.space());
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out += self.space();
                out.push(',');
                out += self.space();
            }
            out += &item;
        }
        out + self.space() + brackets.1
    }

    fn member(&mut self, key: &str, value: &str) -> String {
        format!("\"{key}\"{}:{}{value}", self.space(), self.space())
    }

    fn file(&mut self) -> String {
        let mut members = Vec::new();
        for key in ["model", "env", "hooks", "z"] {
            if self.next(2) == 0 {
                continue;
            }
            let value = match key {
                "env" => {
                    let entries = (0..self.next(3))
                        .map(|n| self.member(&format!("E{n}"), "\"v\""))
                        .collect();
                    self.list(("{", "}"), entries)
                }
                "hooks" => {
                    let mut events = Vec::new();
                    for event in ["Stop", "PreToolUse", "StopFailure"] {
                        if self.next(2) == 0 {
                            let groups = (0..self.next(3))
                                .map(|_| {
                                    let handlers = (0..self.next(3))
                                        .map(|_| "{\"command\": \"echo ]},{\"}".to_owned())
                                        .collect();
                                    let handlers = self.list(("[", "]"), handlers);
                                    let handlers = self.member("hooks", &handlers);
                                    self.list(("{", "}"), vec![handlers])
                                })
                                .collect();
                            let groups = self.list(("[", "]"), groups);
                            events.push(self.member(event, &groups));
                        }
                    }
                    self.list(("{", "}"), events)
                }
                _ => "[1, {\"\\\"\": null}]".to_owned(),
            };
            members.push(self.member(key, &value));
        }
        let bom = if self.next(4) == 0 { "\u{feff}" } else { "" };
        let front = self.space();
        let body = self.list(("{", "}"), members);
        format!("{bom}{front}{body}{}", self.space())
    }
}

#[test]
fn generated_files_come_back_byte_for_byte() {
    for seed in 1..4000_u64 {
        let mut messy = Messy(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start = messy.file();
        assert!(parse(&start).is_ok(), "seed {seed}: {start:?}");
        there_and_back(&start);
    }
}

#[test]
fn an_edit_elsewhere_survives_in_generated_files() {
    for seed in 1..2000_u64 {
        let mut messy = Messy(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start = messy.file();
        let rename = |text: &str| {
            text.replacen("\"model\"", "\"my model\"", 1)
                .replace("\"E0\"", "\"MINE\"")
        };
        let edited = put(start.as_bytes(), &all()).unwrap();
        let changed = rename(&String::from_utf8(edited.bytes).unwrap());
        let back = take(changed.as_bytes(), ours(&env()), &edited.before)
            .unwrap()
            .unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), rename(&start), "seed {seed}");
    }
}

#[test]
fn hooks_and_env_come_and_go_on_their_own() {
    for start in ["{}", "{\n  \"env\": {}\n}", "{\"a\": 1}"] {
        let hooked = put(start.as_bytes(), HOOKS_TEXT).unwrap();
        let both = put(&hooked.bytes, &additions(None, &env()).unwrap()).unwrap();
        let env_only = Ours {
            hooks: false,
            env: &env(),
        };
        assert_eq!(
            take(&both.bytes, env_only, &both.before).unwrap().unwrap(),
            hooked.bytes
        );
        let hooks_only = Ours {
            hooks: true,
            env: &[],
        };
        assert_eq!(
            take(&hooked.bytes, hooks_only, &hooked.before).unwrap().unwrap(),
            start.as_bytes()
        );
    }
}
