//! Decisions of walled-heal as built, without a client.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use serde_json::json;
use tests::client::{wait_for, wait_until};
use tests::executables::executable;
use tests::walled_stage::WalledStage;

#[test]
fn a_wall_moves_the_session() {
    let told = WalledStage::new(400 << 10).explain();
    assert_eq!(told["verdict"], "walled", "{told}");
    assert_eq!(
        told["next"],
        json!({ "next": "move", "from": "A", "to": "B" }),
        "{told}"
    );
}

#[test]
fn explaining_changes_nothing() {
    let stage = WalledStage::new(400 << 10);
    stage.explain();
    assert_eq!(stage.account(), "A");
    assert!(!stage.root().join("pool.json").exists());
}

/// A program that gives API keys outranks every login: another account would
/// change nothing, so the session waits for its own reset.
#[test]
fn a_key_helper_outranks_every_account() {
    let stage = WalledStage::new(400 << 10);
    let settings = json!({ "apiKeyHelper": "/bin/true" });
    fs_err::write(stage.config().join("settings.json"), settings.to_string()).unwrap();
    let told = stage.explain();
    assert_eq!(told["next"]["next"], "park", "{told}");
    assert!(
        told["next"]["why"]
            .as_str()
            .unwrap()
            .starts_with("apiKeyHelper outranks"),
        "{told}"
    );
}

/// A session that is parked when the suite is uninstalled is left alone; an upgrade
/// under it changes nothing.
#[test]
fn a_parked_session_outlives_an_upgrade_and_not_an_uninstall() {
    let stage = WalledStage::new(400 << 10);
    fs_err::remove_dir_all(stage.root().join("accounts/B")).unwrap();
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("walled-heal");
    fs_err::copy(executable("walled-heal"), &program).unwrap();
    let mut hook = stage.start(stage.command(&[&program]));
    let patience = Duration::from_secs(20);
    assert!(
        wait_until(patience, || stage.log().contains("parked")),
        "{}",
        stage.log()
    );
    stage.write_failed_line();

    let newer = programs.path().join("newer");
    fs_err::copy(executable("walled-heal"), &newer).unwrap();
    fs_err::rename(&newer, &program).unwrap();
    std::thread::sleep(Duration::from_secs(7));
    assert!(hook.try_wait().unwrap().is_none(), "{}", stage.log());

    fs_err::remove_file(&program).unwrap();
    let ended = wait_for(patience, || hook.try_wait().unwrap());
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "{}", stage.log());
    assert!(
        stage.log().contains("the suite was uninstalled"),
        "{}",
        stage.log()
    );
}
