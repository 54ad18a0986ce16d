//! Times as the service writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole seconds since the epoch.
pub fn epoch_s(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The instant so many seconds from now.
pub fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}
