//! What a person does while a session waits calls the wake off: no prompt is put
//! in later, into this conversation or another one of the same process.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken expectation is the test's failure"
)]

use std::time::Duration;

use serde_json::json;
use tests::client::{Client, Home, NO_QUESTIONS, PATIENCE, Pane, Tmux, alive, wait_for, wait_until};
use tests::login::Login;
use tests::mock_api::{Failure, MockApi, Step, Window, in_seconds};
use tests::suite::Suite;

const ANSWER: &str = "here I am";

/// The bounds of the back-off, in seconds.
const BACKOFF_S: [u64; 2] = [6, 9];

/// A wake comes at most so long after its time: a slice of the sleep, and a
/// machine that is busy.
const LATE: Duration = Duration::from_secs(10);

/// What the session waits for.
#[derive(Clone, Copy)]
enum Wait {
    /// The end of the back-off after a 529.
    BackOff,
    /// The reset of its 5-hour window; there is no other account.
    Park,
}

/// What the person does in the meantime.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    /// `/clear`.
    Clear,
    /// `/resume` into an earlier session.
    Resume,
    /// A prompt.
    Prompt,
    /// `/exit`.
    Exit,
    /// `rungs off`.
    Off,
    /// The PAUSED marker.
    Pause,
    /// Esc, which calls the client's own continuation off.
    Escape,
}

/// The id of the one session, once it is another than `old`.
fn wait_other(home: &Home, old: &str) -> String {
    let other = wait_for(PATIENCE, || {
        let session = home.sessions().pop()?;
        (session.session_id != old && session.status == "idle").then_some(session.session_id)
    });
    other.unwrap_or_else(|| panic!("still {:?}", home.sessions()))
}

/// The leases of all sessions that say a program put a prompt in.
fn injected(suite: &Suite) -> Vec<String> {
    let folders = fs_err::read_dir(suite.root().join("session")).unwrap();
    let sids = folders
        .flatten()
        .map(|folder| folder.file_name().into_string().unwrap());
    sids.filter(|sid| suite.events(sid).iter().any(|event| event == "injected"))
        .collect()
}

fn called_off(wait: Wait, act: Act, why: &str) {
    let Some(client) = Client::find() else { return };
    let api = MockApi::start();
    let home = Home::new(&client, &api, &Login::new("A"));
    let suite = Suite::install(&home);
    suite.configure(&json!({
        "backoff_s_min": BACKOFF_S[0], "backoff_s_max": BACKOFF_S[1], "park_margin_s": 2
    }));
    let terminal = Tmux::start(&home, Pane::Shell, &[NO_QUESTIONS]);
    let mut session = home.wait_session("idle", PATIENCE);
    let mut earlier = None;
    if act == Act::Resume {
        terminal.prompt("an earlier task");
        terminal.wait_for("mock answer", PATIENCE);
        suite.wait_event(&session.session_id, "stop", 1, PATIENCE);
        terminal.prompt("/clear");
        session.session_id = wait_other(&home, &session.session_id);
        earlier = api.main_requests().pop().map(|request| request.session);
    }

    let (failing, intent, due) = match wait {
        Wait::BackOff => {
            let due = in_seconds(BACKOFF_S[1]);
            (Failure::overloaded(), "wait", due)
        }
        Wait::Park => {
            let reset = in_seconds(22);
            (Failure::wall(Window::FiveHour, reset), "park", reset)
        }
    };
    api.account("A", [Step::fail(failing)], Step::text(ANSWER));
    let sid = session.session_id.as_str();
    let asked = api.main_requests().len();
    terminal.prompt("please do it");
    suite.wait_intent(sid, intent, PATIENCE);

    match act {
        Act::Clear => {
            terminal.prompt("/clear");
            wait_other(&home, sid);
        }
        Act::Resume => {
            let earlier = earlier.unwrap();
            terminal.prompt(&format!("/resume {earlier}"));
            assert_eq!(wait_other(&home, sid), earlier);
        }
        Act::Prompt => {
            terminal.prompt("never mind, do this");
            terminal.wait_for(ANSWER, PATIENCE);
        }
        Act::Exit => {
            terminal.prompt("/exit");
            assert!(wait_until(PATIENCE, || !alive(session.pid)));
        }
        Act::Off => drop(suite.run("rungs", &["off"])),
        Act::Pause => {
            let folder = suite.root().join("loop").join(&sid[..8]);
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(folder.join("PAUSED"), "").unwrap();
        }
        Act::Escape => {
            terminal.key("Escape");
            terminal.wait_for("Automatic continue cancelled", PATIENCE);
        }
    }
    assert!(
        in_seconds(0) < due,
        "the machine was too slow for this test: the wait was over"
    );
    let quiet_until = due + LATE + Duration::from_secs(2);
    std::thread::sleep(quiet_until.duration_since(in_seconds(0)).unwrap());

    let made = 1 + usize::from(act == Act::Prompt);
    assert_eq!(api.main_requests().len(), asked + made, "{}", api.describe());
    assert_eq!(injected(&suite), Vec::<String>::new());
    let episodes = suite.episodes(sid);
    assert_eq!(episodes.len(), 1, "{episodes:?}");
    if act == Act::Exit {
        // The client ends the waiting hook at its exit.
        assert!(
            episodes.iter().all(|episode| episode["outcome"] != "woken"),
            "{episodes:?}"
        );
        return;
    }
    let outcome = suite.wait_outcome(sid, "stale", PATIENCE);
    assert!(outcome["why"].as_str().unwrap().contains(why), "{outcome}");

    // The session is as usable as before, and nothing waits in a queue.
    terminal.prompt("and are you there");
    let last = api.wait_main(asked + made + 1, PATIENCE).pop().unwrap();
    assert!(last.conversation.has_text("and are you there"));
    assert!(!last.conversation.has_text("rungs: ") && !last.conversation.has_text("ccswitch: "));
}

#[test]
fn clear_calls_a_back_off_off() {
    called_off(Wait::BackOff, Act::Clear, "another session");
}

#[test]
fn clear_calls_a_park_off() {
    called_off(Wait::Park, Act::Clear, "another session");
}

#[test]
fn resume_into_another_session_calls_a_back_off_off() {
    called_off(Wait::BackOff, Act::Resume, "another session");
}

#[test]
fn resume_into_another_session_calls_a_park_off() {
    called_off(Wait::Park, Act::Resume, "another session");
}

#[test]
fn a_typed_prompt_calls_a_back_off_off() {
    called_off(Wait::BackOff, Act::Prompt, "another prompt came");
}

#[test]
fn a_typed_prompt_calls_a_park_off() {
    called_off(Wait::Park, Act::Prompt, "another prompt came");
}

#[test]
fn an_exit_ends_a_back_off() {
    called_off(Wait::BackOff, Act::Exit, "");
}

#[test]
fn an_exit_ends_a_park() {
    called_off(Wait::Park, Act::Exit, "");
}

#[test]
fn off_calls_a_back_off_off() {
    called_off(Wait::BackOff, Act::Off, "switched off");
}

#[test]
fn off_calls_a_park_off() {
    called_off(Wait::Park, Act::Off, "switched off");
}

#[test]
fn paused_calls_a_back_off_off() {
    called_off(Wait::BackOff, Act::Pause, "PAUSED");
}

#[test]
fn paused_calls_a_park_off() {
    called_off(Wait::Park, Act::Pause, "PAUSED");
}

#[test]
fn escape_calls_a_park_off() {
    called_off(Wait::Park, Act::Escape, "cancelled the wait");
}
