//! What is known of the accounts, and the choice among them.
//!
//! A refusal is the proof that an account is spent; nothing else is. An account
//! that refused is out until that window's reset (or, where the refusal named
//! none, for [`UNKNOWN_RESET_S`]). A login that died is out until its store is
//! written again. Among the rest the person's order decides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format that this version writes, and the newest that it understands.
pub const FORMAT: u32 = 1;

/// How long an account stays out after a refusal that named no reset, in
/// seconds: long enough not to burn requests, short enough not to lose a night.
pub const UNKNOWN_RESET_S: i64 = 3600;

/// How long after its reset an account is trusted again, in seconds: a request
/// at the very reset is refused again (link-assistant/hive-mind#1152).
pub const RESET_MARGIN_S: i64 = 60;

/// `pool.json`: written by rung 2's library alone, under `pool.lock`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// [`FORMAT`].
    pub format: u32,
    /// The person's order: accounts as they joined. One that is missing here
    /// comes after those that are, by name.
    pub order: Vec<String>,
    /// What is known of each account.
    pub accounts: BTreeMap<String, Account>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// What is known of one account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Walls that were hit, by window.
    pub walls: BTreeMap<String, Wall>,
    /// When its login was found dead (ms since 1970).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_login_at: Option<i64>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// One wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wall {
    /// When it was hit (ms since 1970).
    pub seen_at: i64,
    /// When the window opens again (s since 1970), where the refusal said so.
    pub resets_at: Option<i64>,
}

impl Wall {
    /// Until when (s since 1970) this wall keeps the account out.
    pub fn out_until_s(self) -> i64 {
        match self.resets_at {
            Some(resets_at) => resets_at.saturating_add(RESET_MARGIN_S),
            None => self.seen_at / 1000 + UNKNOWN_RESET_S,
        }
    }
}

/// An account's store, as a look at it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// It holds a login, last written then (ms since 1970).
    Present {
        /// When the store was last written (ms since 1970).
        written_at: i64,
    },
    /// It holds none: never logged in, logged out, or wiped.
    Absent,
    /// Nobody could look; in words.
    Unreadable(String),
}

/// Why an account can't be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It refused; out until then (s since 1970).
    Walled(i64),
    /// Its login is dead.
    NeedsLogin,
    /// Its store holds no login.
    NoLogin,
    /// Its store can't be read; in words.
    Unreadable(String),
    /// The session is on it and leaves it.
    Left,
}

/// The outcome of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Choice {
    /// The account to go to.
    pub target: Option<String>,
    /// Every account that was passed over, with the reason, in order.
    pub passed: Vec<(String, Passed)>,
    /// The earliest instant (s since 1970) at which another, walled account is
    /// free again.
    pub free_at: Option<i64>,
}

impl Pool {
    /// Notes a wall. A known later reset of the same window is never forgotten
    /// for one that is unknown (get-bb/bb#1408).
    pub fn note_wall(&mut self, account: &str, window: &str, wall: Wall) {
        let walls = &mut self.accounts.entry(account.to_owned()).or_default().walls;
        let known = walls.get(window).copied();
        let resets_at = wall.resets_at.or(known
            .and_then(|known| known.resets_at)
            .filter(|at| *at > wall.seen_at / 1000));
        walls.insert(window.to_owned(), Wall { resets_at, ..wall });
    }

    /// The accounts in the person's order.
    pub fn in_order<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
        let mut names: Vec<&str> = names.collect();
        let rank = |name: &str| {
            self.order
                .iter()
                .position(|known| known == name)
                .unwrap_or(usize::MAX)
        };
        names.sort_by(|a, b| (rank(a), *a).cmp(&(rank(b), *b)));
        names
    }

    /// Why an account can't be used now, if it can't.
    pub fn unusable(&self, name: &str, login: &Login, now_ms: i64) -> Option<Passed> {
        let known = self.accounts.get(name);
        match login {
            Login::Absent => return Some(Passed::NoLogin),
            Login::Unreadable(why) => return Some(Passed::Unreadable(why.clone())),
            Login::Present { written_at } => {
                let died_at = known.and_then(|account| account.needs_login_at);
                if died_at.is_some_and(|died_at| *written_at <= died_at) {
                    return Some(Passed::NeedsLogin);
                }
            }
        }
        let until = known
            .into_iter()
            .flat_map(|account| account.walls.values())
            .map(|wall| wall.out_until_s())
            .max();
        until.filter(|until| *until > now_ms / 1000).map(Passed::Walled)
    }

    /// Chooses the account to go to, leaving `from`.
    pub fn choose(&self, accounts: &BTreeMap<String, Login>, from: &str, now_ms: i64) -> Choice {
        let mut choice = Choice::default();
        for name in self.in_order(accounts.keys().map(String::as_str)) {
            let login = accounts.get(name).unwrap_or(&Login::Absent);
            let passed = match self.unusable(name, login, now_ms) {
                None if name == from => Passed::Left,
                None => {
                    choice.target.get_or_insert_with(|| name.to_owned());
                    continue;
                }
                Some(passed) => passed,
            };
            if let Passed::Walled(until) = passed
                && name != from
            {
                choice.free_at = Some(choice.free_at.map_or(until, |known: i64| known.min(until)));
            }
            choice.passed.push((name.to_owned(), passed));
        }
        choice
    }
}

/// Whether a name can be an account's or a shard's: it becomes a path part, and
/// `<name>.lock` beside it is the client's (measured, 2.1.332).
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && !name.starts_with(['.', '-'])
        && !name.to_ascii_lowercase().ends_with(".lock")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;
    const NOW_S: i64 = NOW / 1000;

    fn logins(names: &[&str]) -> BTreeMap<String, Login> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), Login::Present { written_at: 1 }))
            .collect()
    }

    fn walled(account: &str, resets_at: Option<i64>) -> Pool {
        let mut pool = Pool {
            order: vec!["b".into(), "a".into()],
            ..Pool::default()
        };
        pool.note_wall(
            account,
            "seven_day",
            Wall {
                seen_at: NOW,
                resets_at,
            },
        );
        pool
    }

    #[test]
    fn the_persons_order_decides_among_the_free() {
        let pool = walled("z", None);
        let choice = pool.choose(&logins(&["a", "b", "c"]), "b", NOW);
        assert_eq!(choice.target.as_deref(), Some("a"));
        assert_eq!(choice.passed, vec![("b".to_owned(), Passed::Left)]);
    }

    #[test]
    fn a_refusal_keeps_an_account_out_until_its_reset() {
        let pool = walled("b", Some(NOW_S + 100));
        let accounts = logins(&["a", "b"]);
        let out = NOW_S + 100 + RESET_MARGIN_S;
        assert_eq!(
            pool.choose(&accounts, "a", NOW),
            Choice {
                target: None,
                passed: vec![("b".into(), Passed::Walled(out)), ("a".into(), Passed::Left)],
                free_at: Some(out),
            }
        );
        assert_eq!(
            pool.choose(&accounts, "a", out * 1000).target.as_deref(),
            Some("b")
        );
    }

    #[test]
    fn a_refusal_without_a_reset_keeps_out_for_an_hour() {
        let pool = walled("b", None);
        let accounts = logins(&["a", "b"]);
        assert_eq!(pool.choose(&accounts, "a", NOW + 3_599_000).target, None);
        assert_eq!(
            pool.choose(&accounts, "a", NOW + 3_600_000).target.as_deref(),
            Some("b")
        );
    }

    #[test]
    fn a_later_refusal_without_a_reset_does_not_erase_the_known_one() {
        let mut pool = walled("b", Some(NOW_S + 9000));
        pool.note_wall(
            "b",
            "seven_day",
            Wall {
                seen_at: NOW + 1000,
                resets_at: None,
            },
        );
        assert_eq!(
            pool.accounts["b"].walls["seven_day"].resets_at,
            Some(NOW_S + 9000)
        );
    }

    #[test]
    fn a_dead_login_is_out_until_its_store_is_written_again() {
        let mut pool = Pool::default();
        pool.accounts.entry("b".into()).or_default().needs_login_at = Some(50);
        let written = |written_at| Login::Present { written_at };
        assert_eq!(pool.unusable("b", &written(50), NOW), Some(Passed::NeedsLogin));
        assert_eq!(pool.unusable("b", &written(51), NOW), None);
        assert_eq!(pool.unusable("b", &Login::Absent, NOW), Some(Passed::NoLogin));
    }

    #[test]
    fn fields_of_other_versions_survive() {
        let text = r#"{"format":1,"order":["a"],"accounts":{"a":{"walls":{},"plan":"max"}},"later":[1]}"#;
        let pool: Pool = serde_json::from_str(text).unwrap();
        let again: Value = serde_json::from_str(&serde_json::to_string(&pool).unwrap()).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn names() {
        for good in ["a", "work", "me@example.com", "b-2_x.y"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "work.lock",
            "WORK.LOCK",
            "a b",
            "-x",
            "ä",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
