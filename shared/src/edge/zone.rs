//! The machine's time zone, for limit sentences that print none.

use super::env;

/// The zone's IANA name, where the machine tells one: `$TZ`, else what
/// `/etc/localtime` links to, else `/etc/timezone`.
pub fn name() -> Option<String> {
    let from_env = env::text(env::TZ).map(|zone| zone.trim_start_matches(':').to_owned());
    from_env
        .filter(|zone| !zone.starts_with('/'))
        .or_else(from_link)
        .or_else(from_file)
}

fn from_link() -> Option<String> {
    let target = fs_err::canonicalize("/etc/localtime").ok()?;
    let target = target.to_str()?;
    target.split_once("/zoneinfo/").map(|(_, zone)| zone.to_owned())
}

fn from_file() -> Option<String> {
    let text = fs_err::read_to_string("/etc/timezone").ok()?;
    Some(text.trim().to_owned()).filter(|zone| !zone.is_empty())
}
