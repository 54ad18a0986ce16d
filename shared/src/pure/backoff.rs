//! How long to wait before the next try after a transient failure.
//!
//! The step doubles with each try, and each session adds its own part to it, so
//! that fifty sessions that failed together do not come back together. Waits
//! have no daily cap: an outage of hours must not use up the night.

/// The bounds of the waits, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The shortest wait, and the first step.
    pub min_ms: u64,
    /// The longest wait.
    pub max_ms: u64,
}

impl Backoff {
    /// The wait before try number `tries_before` (from 0), in milliseconds.
    ///
    /// Between the step and one and a half of it, never over the maximum. The
    /// same seed and number always give the same wait.
    pub fn wait_ms(self, tries_before: u32, seed: u64) -> u64 {
        let max = self.max_ms.max(self.min_ms);
        let doubled = 1_u64
            .checked_shl(tries_before)
            .and_then(|factor| self.min_ms.checked_mul(factor))
            .unwrap_or(max);
        // At the top a third is left for the jitter.
        let step = doubled.min(max - max / 3).max(self.min_ms);
        (step + part_of(step / 2, seed, tries_before)).min(max)
    }

    /// A wait of less than the first step: how sessions spread after a recovery.
    pub fn spread_ms(self, seed: u64) -> u64 {
        part_of(self.min_ms, seed, u32::MAX)
    }
}

/// A seed from what sets one session's turn apart from all others.
pub fn seed(parts: &[&str]) -> u64 {
    // FNV-1a: any even spread will do.
    parts
        .iter()
        .flat_map(|part| part.bytes().chain(std::iter::once(0)))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// A number below `whole`, evenly spread over seeds.
fn part_of(whole: u64, seed: u64, number: u32) -> u64 {
    // The finish of SplitMix64: neighbouring seeds give unlike numbers.
    let mut mixed = seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    mixed.checked_rem(whole).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHT: Backoff = Backoff {
        min_ms: 30_000,
        max_ms: 1_800_000,
    };

    #[test]
    fn steps_double_up_to_the_maximum() {
        let steps = [
            (0, 30_000, 45_000),
            (1, 60_000, 90_000),
            (2, 120_000, 180_000),
            (5, 960_000, 1_440_000),
            (6, 1_200_000, 1_800_000),
            (40, 1_200_000, 1_800_000),
            (u32::MAX, 1_200_000, 1_800_000),
        ];
        for (tries, least, most) in steps {
            for seed in 0..200 {
                let wait = NIGHT.wait_ms(tries, seed);
                assert!((least..=most).contains(&wait), "try {tries}, seed {seed}: {wait}");
            }
        }
    }

    #[test]
    fn fifty_sessions_spread_and_each_is_steady() {
        let waits: std::collections::BTreeSet<u64> = (0..50)
            .map(|n| NIGHT.wait_ms(0, seed(&[&format!("session-{n}"), "prompt"])))
            .collect();
        assert!(waits.len() > 45, "{} of 50 differ", waits.len());
        assert_eq!(NIGHT.wait_ms(3, 7), NIGHT.wait_ms(3, 7));
        assert!((0..50).all(|seed| NIGHT.spread_ms(seed) < NIGHT.min_ms));
    }

    #[test]
    fn odd_bounds_do_no_harm() {
        let zero = Backoff { min_ms: 0, max_ms: 0 };
        assert_eq!((zero.wait_ms(9, 1), zero.spread_ms(1)), (0, 0));
        let upside_down = Backoff {
            min_ms: 100,
            max_ms: 10,
        };
        assert_eq!(upside_down.wait_ms(5, 1), 100);
    }
}
