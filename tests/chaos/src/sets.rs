//! The keys of a run that are taken several at a time, in sets that overlap; and one at a time, as any other key.

use std::time::Duration;

/// As many at each shard.
pub const KEYS_PER_SHARD: usize = 2;

/// The longest critical section of such a key: sets wait for one another in chains.
pub const SECTION: Duration = Duration::from_secs(2);

/// The name of a key that is taken in sets.
pub fn key(number: usize) -> String {
    format!("set/{number}")
}

/// Whether `key` is such a key: its name says so.
pub fn has(key: &str) -> bool {
    key.starts_with("set/")
}
