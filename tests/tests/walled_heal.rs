//! Decisions of walled-heal as built, without a client.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::json;
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
