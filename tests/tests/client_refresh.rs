//! A move in the middle of the client's own token refresh. A refresh token works
//! once: whoever loses the answer has lost the login.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux};
use tests::login::Login;
use tests::mock_api::{MockApi, Step, Window, in_seconds};
use tests::oauth_endpoint::{OauthEndpoint, Refresh};
use tests::suite::Suite;

/// How long the endpoint holds an answer back: beyond the client's first renewal
/// of its lock, after 5 s (measured, 2.1.332).
const REFRESH_TAKES: Duration = Duration::from_secs(8);

/// A home whose refreshes go to the endpoint.
fn home_of(client: &Client, api: &MockApi) -> (Home, OauthEndpoint) {
    let mut home = Home::new(client, api, &Login::new("A"));
    let endpoint = OauthEndpoint::start(home.path());
    for (name, value) in endpoint.environment() {
        home.set(name, &value);
    }
    endpoint.delay(REFRESH_TAKES);
    (home, endpoint)
}

/// From now on A's login is about to run out: the next request refreshes it.
fn expire(home: &Home) {
    Login::new("A")
        .expiring_in(Duration::from_mins(1))
        .write(&home.config());
}

/// A terminal, and the session in it.
fn start(home: &Home) -> (Tmux<'_>, String) {
    let known = home.sessions();
    let terminal = Tmux::start(home, Pane::Shell, &[NO_QUESTIONS]);
    let sessions = home.sessions().into_iter();
    let is_known = |sid: &str| known.iter().any(|old| old.session_id == sid);
    let new = sessions
        .map(|session| session.session_id)
        .find(|sid| !is_known(sid));
    (terminal, new.unwrap())
}

/// The client's locks on stores and what belongs to them, in a folder.
fn locks_in(folder: &Path) -> Vec<PathBuf> {
    // The last two are the client's older lock, beside a store.
    let names = [
        ".oauth_refresh.lock",
        ".storage-write.lock",
        ".claude.lock",
        "B.lock",
    ];
    let entries = fs_err::read_dir(folder).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_lock = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        names.iter().any(|lock| name.starts_with(lock))
    };
    paths.filter(is_lock).collect()
}

/// Every lock on a store, wherever the client or a flip could have left it.
fn locks(home: &Home, suite: &Suite) -> Vec<PathBuf> {
    let accounts = suite.root().join("accounts");
    let stores = [home.config(), accounts.join("B")];
    let beside = [home.path().to_owned(), accounts, suite.root().join("shards")];
    stores
        .iter()
        .chain(&beside)
        .flat_map(|folder| locks_in(folder))
        .collect()
}

fn generation_of(store: &Path) -> u32 {
    Login::read(store).unwrap().generation
}

fn ms(refresh: &Refresh) -> (i64, i64) {
    let ms = |at: std::time::SystemTime| {
        i64::try_from(at.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap()
    };
    (ms(refresh.asked_at), ms(refresh.answered_at.unwrap()))
}

/// One session refreshes A's token while another one's wall flips the shard they
/// share: the flip waits for the refresh, and both logins stay whole.
#[test]
fn a_flip_waits_for_a_refresh_and_both_logins_stay_whole() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let (home, endpoint) = home_of(&client, &api);
    let suite = Suite::install(&home);
    suite.add_account("B");
    api.prompt("refresh", [], Step::text("the refreshing one is done"));
    // The request is refused in the middle of the other session's refresh.
    let wall = Step::wall(Window::FiveHour, in_seconds(3 * 3600));
    let wall = wall.times(1).delay(Duration::from_secs(5));
    api.prompt("be walled", [wall], Step::text("the walled one is done"));

    let (refreshing, refreshing_sid) = start(&home);
    let (walled, walled_sid) = start(&home);
    walled.prompt("be walled");
    api.wait_main(1, PATIENCE);
    expire(&home);
    refreshing.prompt("refresh");
    let refresh = &endpoint.wait_answered(1, PATIENCE)[0];
    walled.wait_for("the walled one is done", PATIENCE);
    refreshing.wait_for("the refreshing one is done", PATIENCE);

    let (asked_at, answered_at) = ms(refresh);
    let episode = suite.wait_outcome(&walled_sid, "woken", PATIENCE);
    let claimed_at = episode["claimed_at"].as_i64().unwrap();
    assert!(
        asked_at < claimed_at && claimed_at < answered_at,
        "the wall was not in the middle of the refresh: {asked_at} {claimed_at} {answered_at}"
    );
    let flips = suite.flips();
    assert_eq!(flips.len(), 1, "{flips:?}");
    assert_eq!(suite.account_of("default"), "B");
    let at = |line: &serde_json::Value| line["at"].as_i64().unwrap();
    assert!(episode["done_at"].as_i64().unwrap() >= answered_at, "{episode}");
    assert!(at(&flips[0]) <= episode["done_at"].as_i64().unwrap());

    // One refresh in all; A has what it gave, B what it had.
    assert_eq!(endpoint.refreshes().len(), 1, "{:?}", endpoint.refreshes());
    assert_eq!(
        (refresh.account.as_str(), refresh.generation, refresh.reused),
        ("A", 0, false)
    );
    assert_eq!(Login::read(&home.config()).unwrap().account, "A");
    assert_eq!(generation_of(&home.config()), 1);
    let stores = suite.root().join("accounts");
    assert_eq!(Login::read(&stores.join("B")).unwrap().account, "B");
    assert_eq!(generation_of(&stores.join("B")), 0);
    assert_eq!(locks(&home, &suite), Vec::<PathBuf>::new());

    // Both go on on B.
    refreshing.prompt("refresh no more");
    api.wait_until(
        "a further request of the refreshing session",
        PATIENCE,
        |requests| {
            requests
                .iter()
                .filter(|request| request.session == refreshing_sid)
                .count()
                >= 2
        },
    );
    for sid in [&refreshing_sid, &walled_sid] {
        let requests = api.main_requests();
        let last = requests.iter().rfind(|request| &request.session == sid).unwrap();
        assert_eq!(
            (last.account.as_str(), last.status),
            ("B", 200),
            "{}",
            api.describe()
        );
    }
    assert_eq!(
        suite
            .events(&refreshing_sid)
            .iter()
            .filter(|event| *event == "injected")
            .count(),
        0
    );
}

/// Why a flip waits: the bare one, in the same situation, loses A's login. Should
/// a client come that survives it, this test says so and the locks can go.
#[test]
fn a_bare_flip_in_a_refresh_loses_the_login() {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let (home, endpoint) = home_of(&client, &api);
    let suite = Suite::install(&home);
    suite.add_account("B");

    let (terminal, _) = start(&home);
    expire(&home);
    terminal.prompt("refresh");
    endpoint.wait_asked(1, PATIENCE);
    let shards = suite.root().join("shards");
    std::os::unix::fs::symlink("../accounts/B", shards.join("new")).unwrap();
    fs_err::rename(shards.join("new"), shards.join("default")).unwrap();
    // The client gives the refresh up: it can no longer renew its lock through the
    // link. The endpoint has used the token up all the same.
    api.wait_main(1, PATIENCE);
    std::thread::sleep(REFRESH_TAKES);

    let used = &endpoint.refreshes()[0];
    assert_eq!((used.account.as_str(), used.generation), ("A", 0));
    let left = Login::read(&home.config()).unwrap();
    assert_eq!((left.account.as_str(), left.generation), ("A", 0));
    assert!(
        locks(&home, &suite).contains(&home.config().join(".oauth_refresh.lock")),
        "{:?}",
        locks(&home, &suite)
    );
}
