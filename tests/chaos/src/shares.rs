//! The keys of a run that several processes hold at the same time: semaphores and read-write locks.

use rand::{RngExt, rngs::StdRng};
use ringfence_coordinator::shard::LockMode;

/// The most permits of each semaphore at a shard. While a run goes on, every third request says that there is one less.
const PERMITS: [u32; 2] = [3, 5];
/// The read-write locks at a shard.
const TABLES: usize = 2;

/// The names of such keys at a shard for which `is_there` holds; the read-write locks first, if `tables_first`.
pub fn keys(is_there: impl Fn(&String) -> bool, tables_first: bool) -> Vec<String> {
    let there = |kind: String| (0..).map(move |number| format!("{kind}/{number}"));
    let first = |kind: String| there(kind).find(&is_there);
    let permits = PERMITS.map(|permits| first(format!("permits/{permits}")));
    let tables = there("table".into()).filter(&is_there).take(TABLES);
    let mut keys: Vec<String> = permits.into_iter().flatten().chain(tables).collect();
    if tables_first {
        keys.rotate_left(PERMITS.len());
    }
    keys
}

/// Whether `key` is such a key: its name says so.
pub fn has(key: &str) -> bool {
    key.starts_with("table/") || most_permits(key).is_some()
}

/// What to ask `key` for.
pub fn choose(key: &str, random: &mut StdRng) -> LockMode {
    if let Some(most) = most_permits(key) {
        let capacity = most - u32::from(random.random_ratio(1, 3));
        let count = random.random_range(1..=capacity);
        return LockMode::Permits { count, capacity };
    }
    match has(key) {
        true if random.random_bool(0.7) => LockMode::Read,
        true => LockMode::Write,
        false => LockMode::Exclusive,
    }
}

fn most_permits(key: &str) -> Option<u32> {
    let (most, _) = key.strip_prefix("permits/")?.split_once('/')?;
    most.parse().ok()
}
