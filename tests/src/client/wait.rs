//! Waiting for the world with a limit.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what normally takes a second or two. Generous,
/// because the machines that run tests are small and busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Looks every 50 ms until there is a value; `None` when time is up.
pub fn wait_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= end {
            return found;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Looks every 50 ms until it holds; whether it came to that.
pub fn wait_until(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    wait_for(patience, || holds().then_some(())).is_some()
}
