//! A fleet on one account: everybody hits the wall in the same moment.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use tests::client::{Client, Home, PATIENCE, StreamJson, wait_until};
use tests::login::Login;
use tests::mock_api::{MockApi, Request, Step, Window, in_seconds};
use tests::suite::Suite;

const SESSIONS: usize = 20;
const DONE: &str = "all done on the other account";

/// How long the API takes to refuse: all sessions are refused before the first of
/// them can have moved the shard.
const REFUSAL_TAKES: Duration = Duration::from_secs(6);

mod timed {
    use super::*;

    #[test]
    fn twenty_walls_are_one_flip_and_twenty_continuations() {
        let Some(client) = Client::find() else { return };
        let api = MockApi::start();
        let home = Home::new(&client, &api, &Login::new("A"));
        let suite = Suite::install(&home);
        for account in ["B", "C"] {
            suite.add_account(account);
        }
        let count = u32::try_from(SESSIONS).unwrap();
        let reset = in_seconds(3 * 3600);
        api.account(
            "A",
            [Step::bash("until [ -e ~/go ]; do sleep 0.2; done; echo from-the-tool").times(count)],
            Step::wall(Window::FiveHour, reset).delay(REFUSAL_TAKES),
        );
        api.account("B", [], Step::text(DONE));

        let mut sessions: Vec<StreamJson> = (0..SESSIONS).map(|_| StreamJson::start(&home, &[])).collect();
        for session in &mut sessions {
            session.send("please do it");
        }
        // All are in their tool; now it ends for all of them at once.
        api.wait_main(SESSIONS, 2 * PATIENCE);
        fs_err::write(home.path().join("go"), "").unwrap();
        api.wait_main(3 * SESSIONS, 2 * PATIENCE);
        let answered = |session: &StreamJson| session.results().last().is_some_and(|text| text == DONE);
        assert!(
            wait_until(PATIENCE, || sessions.iter().all(answered)),
            "{}",
            api.describe()
        );
        // A second flip or continuation would come now.
        std::thread::sleep(Duration::from_secs(5));

        let mut by_session: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for request in api.main_requests() {
            by_session
                .entry(request.session.clone())
                .or_default()
                .push(request);
        }
        assert_eq!(by_session.len(), SESSIONS, "{}", api.describe());
        for (sid, requests) in &by_session {
            let seen: Vec<(&str, u16)> = requests
                .iter()
                .map(|request| (request.account.as_str(), request.status))
                .collect();
            assert_eq!(seen, [("A", 200), ("A", 429), ("B", 200)], "{}", suite.log(sid));
            assert!(requests[2].conversation.continues(&requests[1].conversation));
            assert!(requests[2].conversation.has_tool_result("from-the-tool"));
            let events = suite.events(sid);
            let continuations = events.iter().filter(|event| *event == "injected").count();
            assert_eq!(continuations, 1, "{events:?}");
            let episodes = suite.episodes(sid);
            assert_eq!((episodes.len(), &episodes[0]["outcome"]), (1, &"woken".into()));
        }
        assert_eq!(suite.flips().len(), 1, "{:?}", suite.flips());
        assert_eq!(suite.account_of("default"), "B");
        let accounts = &suite.pool()["accounts"];
        assert!(accounts["A"]["walls"]["five_hour"].is_object(), "{accounts}");
        for spared in ["B", "C"] {
            let walls = &accounts[spared]["walls"];
            assert!(
                walls.as_object().is_none_or(serde_json::Map::is_empty),
                "{accounts}"
            );
        }
    }
}
