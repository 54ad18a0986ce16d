//! `pool.json`, read and changed under rung 2's lock.

use anyhow::{Context, bail};

use crate::pure::pool::{FORMAT, Pool};

use super::lock;
use super::shard::POOL_LOCK;
use super::state::{Durability, State};

const NAME: &str = "pool.json";

/// Reads the pool; a missing file is an empty one.
///
/// # Errors
/// Unreadable or not understood.
pub fn read(state: &State) -> anyhow::Result<Pool> {
    let Some(bytes) = state.read(NAME).context("pool.json can't be read")? else {
        return Ok(Pool {
            format: FORMAT,
            ..Pool::default()
        });
    };
    serde_json::from_slice(&bytes).context("pool.json is not understood")
}

/// Changes the pool under its lock, waiting for it at most `wait_ms`.
///
/// # Errors
/// The lock is held by another, the file can't be read or written, or it is of a
/// newer format: such a file is read but never written.
pub fn change<T>(state: &State, wait_ms: u64, change: impl FnOnce(&mut Pool) -> T) -> anyhow::Result<T> {
    let Some(held) = lock::take(state, POOL_LOCK, wait_ms).context("pool.lock can't be taken")? else {
        bail!("pool.lock is held by another process");
    };
    let mut pool = read(state)?;
    let before = pool.clone();
    let result = change(&mut pool);
    if pool != before {
        if pool.format > FORMAT {
            bail!(
                "pool.json has format {}, this version writes {FORMAT}: upgrade Rungs",
                pool.format
            );
        }
        pool.format = FORMAT;
        state
            .replace(NAME, &serde_json::to_vec_pretty(&pool)?, Durability::Process)
            .context("pool.json can't be written")?;
    }
    drop(held);
    Ok(result)
}
