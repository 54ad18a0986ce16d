//! The clock, read here alone: everything that decides takes the time as a value.

#![expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now, in milliseconds since 1970 (UTC). A clock before 1970 reads 0.
pub fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Sleeps; a thin name so that the callers' waits are easy to find.
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
