//! The settings file as two tools change it: `rungs install` puts hooks, `ccswitch
//! adopt` an `env` entry, in any order, and each can be taken back alone.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::path::PathBuf;

use shared::edge::settings_file::{self, Mode, Outcome};
use shared::edge::state::State;

const KEY: &str = "CLAUDE_SECURESTORAGE_CONFIG_DIR";
const HOOKS: &str = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/p/bin/drive-gate", "args": ["--root", "/r"], "timeout": 10}]}]}}"#;

struct Place {
    dir: tempfile::TempDir,
    state: State,
}

impl Place {
    fn new(settings: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        if let Some(text) = settings {
            fs_err::write(dir.path().join("settings.json"), text).unwrap();
        }
        Self { dir, state }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("settings.json")
    }

    fn text(&self) -> Option<String> {
        fs_err::read_to_string(self.path()).ok()
    }

    fn shard(&self) -> String {
        self.state
            .path()
            .join("shards/default")
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn hooks(&self, hooks: &str) -> Outcome {
        settings_file::put_hooks(&self.state, &self.path(), hooks, Mode::Write).unwrap()
    }

    fn adopt(&self) -> Outcome {
        settings_file::set_env(&self.state, &self.path(), KEY, &self.shard(), Mode::Write).unwrap()
    }

    fn leave(&self) -> Outcome {
        settings_file::unset_env(&self.state, &self.path(), KEY, Mode::Write).unwrap()
    }

    fn take_back(&self) -> settings_file::TakenBack {
        let root = self.state.path();
        settings_file::take_back(&self.state, &self.path(), KEY, root, Mode::Write).unwrap()
    }
}

const STARTS: [Option<&str>; 6] = [
    None,
    Some(""),
    Some("{}"),
    Some("{\n  \"env\": {}\n}\n"),
    Some("{\"env\":{\"A\":\"b\"},\"hooks\":{\"Stop\":[]}}"),
    Some("{\r\n\t\"model\": \"opus\"\r\n}"),
];

#[test]
fn any_order_of_install_and_adopt_comes_back_to_the_same_bytes() {
    type Act = fn(&Place) -> Outcome;
    let install: Act = |place| place.hooks(HOOKS);
    let upgrade: Act = |place| place.hooks(&HOOKS.replace("\"timeout\": 10", "\"timeout\": 11"));
    let orders: [&[Act]; 6] = [
        &[install],
        &[Place::adopt],
        &[install, Place::adopt],
        &[Place::adopt, install],
        &[install, Place::adopt, upgrade],
        &[install, Place::adopt, Place::leave, upgrade, Place::adopt],
    ];
    for start in STARTS {
        for (index, order) in orders.iter().enumerate() {
            let place = Place::new(start);
            for act in *order {
                assert_eq!(act(&place), Outcome::Written, "{start:?} order {index}");
                assert_eq!(act(&place), Outcome::Unchanged, "{start:?} order {index}");
            }
            let back = place.take_back();
            assert_eq!(place.text().as_deref(), start, "order {index}");
            assert_eq!(back.identical, start.map(|_| true), "{start:?} order {index}");
            assert_eq!(back.env.is_empty(), index == 0);
            assert_eq!(place.take_back().outcome, Outcome::Unchanged);
        }
    }
}

#[test]
fn adopting_and_leaving_does_not_touch_the_hooks() {
    for start in STARTS {
        let place = Place::new(start);
        place.hooks(HOOKS);
        let installed = place.text();
        place.adopt();
        assert!(place.text().unwrap().contains(&place.shard()));
        place.leave();
        assert_eq!(place.text(), installed, "{start:?}");
    }
}

#[test]
fn a_value_that_the_user_set_is_refused_and_stays() {
    let text = format!("{{\"env\": {{\"{KEY}\": \"/mine\"}}}}");
    let place = Place::new(Some(&text));
    let refused = settings_file::set_env(&place.state, &place.path(), KEY, "/r", Mode::Write);
    let why = format!("{:#}", refused.unwrap_err());
    assert!(
        why.contains("is already set to another value") && !why.contains('\n'),
        "{why}"
    );
    assert_eq!(place.leave(), Outcome::Unchanged);
    place.hooks(HOOKS);
    assert!(place.take_back().env.is_empty());
    assert_eq!(place.text(), Some(text));
}

#[test]
fn a_run_that_died_before_the_file_was_written_is_taken_back() {
    let place = Place::new(Some("{\"hooks\": {}}"));
    place.hooks(HOOKS);
    // The record is there, the file still the old one.
    fs_err::write(place.path(), "{\"hooks\": {}}").unwrap();
    assert_eq!(place.take_back().identical, Some(true));
    assert_eq!(place.text().as_deref(), Some("{\"hooks\": {}}"));
}

#[test]
fn a_lost_record_still_finds_what_is_ours() {
    let place = Place::new(Some("{\"a\": 1}"));
    place.hooks(HOOKS);
    place.adopt();
    place.state.remove(settings_file::RECORD).unwrap();
    let back = place.take_back();
    assert_eq!((back.hooks, back.env.len(), back.identical), (1, 1, None));
    assert_eq!(place.text().as_deref(), Some("{\"a\": 1}"));
}

#[test]
fn a_record_of_a_newer_format_is_read_and_never_written() {
    let place = Place::new(Some("{}"));
    let newer = "{\"format\": 2, \"settings\": {}}";
    fs_err::write(place.state.path().join(settings_file::RECORD), newer).unwrap();
    let refused = settings_file::put_hooks(&place.state, &place.path(), HOOKS, Mode::Write);
    assert!(format!("{:#}", refused.unwrap_err()).contains("a newer version"));
    assert_eq!(place.text().as_deref(), Some("{}"));
    let record = fs_err::read_to_string(place.state.path().join(settings_file::RECORD));
    assert_eq!(record.unwrap(), newer);
}

#[test]
fn unknown_members_of_the_record_survive() {
    let place = Place::new(Some("{}"));
    let record = place.state.path().join(settings_file::RECORD);
    fs_err::write(&record, "{\"format\": 1, \"later\": [1]}").unwrap();
    place.hooks(HOOKS);
    settings_file::note(&place.state, "prefix", Some("/p".into())).unwrap();
    let text = fs_err::read_to_string(record).unwrap();
    assert!(
        text.contains("\"later\"") && text.contains("\"prefix\""),
        "{text}"
    );
}

#[test]
fn two_tools_at_once_lose_nothing() {
    for _ in 0..10 {
        let place = Place::new(Some("{}"));
        std::thread::scope(|scope| {
            let one = scope.spawn(|| place.hooks(HOOKS));
            let two = scope.spawn(|| place.adopt());
            assert_eq!(
                (one.join().unwrap(), two.join().unwrap()),
                (Outcome::Written, Outcome::Written)
            );
        });
        let text = place.text().unwrap();
        assert!(text.contains("drive-gate") && text.contains(KEY), "{text}");
        place.take_back();
        assert_eq!(place.text().as_deref(), Some("{}"));
    }
}
