//! Made-up logins: the credential file as the client writes it, with tokens that
//! carry the name of the account and the number of the generation, so that a log
//! shows at a glance which login was used.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::mock_api::epoch_s;

const ACCESS: &str = "sk-ant-oat01-mock-";
const REFRESH: &str = "sk-ant-ort01-mock-";

/// One generation of an account's login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The account's name: letters and digits.
    pub account: String,
    /// 0 at the first login, one more after each refresh.
    pub generation: u32,
    /// When the access token runs out.
    pub expires_at: SystemTime,
}

impl Login {
    /// A first login that is good for a year.
    pub fn new(account: &str) -> Login {
        Login {
            account: account.to_owned(),
            generation: 0,
            expires_at: SystemTime::now() + Duration::from_hours(365 * 24),
        }
    }

    /// The same login with so little time left. The client refreshes a token
    /// five minutes before it runs out.
    #[must_use]
    pub fn expiring_in(mut self, left: Duration) -> Login {
        self.expires_at = SystemTime::now() + left;
        self
    }

    /// The access token.
    pub fn access_token(&self) -> String {
        format!("{ACCESS}{}-g{}", self.account, self.generation)
    }

    /// The refresh token.
    pub fn refresh_token(&self) -> String {
        format!("{REFRESH}{}-g{}", self.account, self.generation)
    }

    /// The contents of `.credentials.json`.
    pub fn credentials(&self) -> Value {
        json!({ "claudeAiOauth": {
            "accessToken": self.access_token(),
            "refreshToken": self.refresh_token(),
            "expiresAt": epoch_s(self.expires_at) * 1000,
            "scopes": ["user:inference", "user:profile", "user:sessions:claude_code"],
            "subscriptionType": "max",
            "rateLimitTier": "default_claude_max_20x"
        } })
    }

    /// Writes `.credentials.json` into a store folder, which is made if missing.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, store: &Path) {
        fs_err::create_dir_all(store).unwrap();
        let path = store.join(".credentials.json");
        fs_err::write(&path, self.credentials().to_string()).unwrap();
        crate::files::make_private(&path);
    }

    /// Reads the login of a store folder, whatever generation it is at.
    pub fn read(store: &Path) -> Option<Login> {
        let text = fs_err::read_to_string(store.join(".credentials.json")).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let oauth = value.get("claudeAiOauth")?;
        let (account, generation) = parse(REFRESH, oauth.get("refreshToken")?.as_str()?)?;
        let expires_ms = oauth.get("expiresAt")?.as_u64()?;
        Some(Login {
            account: account.to_owned(),
            generation,
            expires_at: SystemTime::UNIX_EPOCH + Duration::from_millis(expires_ms),
        })
    }
}

/// The account of an access token of ours.
pub fn account_of(access_token: &str) -> Option<&str> {
    parse(ACCESS, access_token).map(|(account, _)| account)
}

/// The account and generation of a refresh token of ours.
pub fn refresh_token_parts(refresh_token: &str) -> Option<(&str, u32)> {
    parse(REFRESH, refresh_token)
}

fn parse<'a>(prefix: &str, token: &'a str) -> Option<(&'a str, u32)> {
    let (account, generation) = token.strip_prefix(prefix)?.rsplit_once("-g")?;
    Some((account, generation.parse().ok()?))
}
