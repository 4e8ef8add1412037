//! The keys of a run that several processes hold at the same time: semaphores and read-write locks.

use rand::{RngExt, rngs::StdRng};
use ringfence_client::Preference;
use ringfence_coordinator::shard::LockMode;

/// The names of a semaphore and of a read-write lock for which `is_there` holds, at the shard in `place`: there are 3 permits
/// or more. While a run goes on, every third request says that there is one less.
pub fn keys(is_there: impl Fn(&String) -> bool, place: usize) -> [String; 2] {
    let there = |kind: String| {
        let mut named = (0..).map(|number| format!("{kind}/{number}"));
        named.find(&is_there).expect("numbers do not end")
    };
    let mut keys = [
        there(format!("permits/{}", 3 + place)),
        there("table".into()),
    ];
    if place > 0 {
        keys.reverse();
    }
    keys
}

/// Whether `key` is such a key: its name says so.
pub fn has(key: &str) -> bool {
    key.starts_with("table/") || most_permits(key).is_some()
}

/// What a process is to ask `key` for: mostly for the side that it prefers.
pub fn choose(key: &str, process: u32, random: &mut StdRng) -> LockMode {
    if let Some(most) = most_permits(key) {
        let capacity = most - u32::from(random.random_ratio(1, 3));
        let count = random.random_range(1..=capacity);
        return LockMode::Permits { count, capacity };
    }
    let reads = match preference(key, process) {
        Some(Preference::Readers) => 0.9,
        Some(Preference::Writers) => 0.1,
        None => 0.6,
    };
    match has(key) {
        true if random.random_bool(reads) => LockMode::Read,
        true => LockMode::Write,
        false => LockMode::Exclusive,
    }
}

/// The side of `key` that a process prefers, by their numbers: of three processes each has another opinion.
pub fn preference(key: &str, process: u32) -> Option<Preference> {
    let number: u64 = key.strip_prefix("table/")?.parse().ok()?;
    let sides = [None, Some(Preference::Readers), Some(Preference::Writers)];
    sides[((number + u64::from(process)) % 3) as usize]
}

fn most_permits(key: &str) -> Option<u32> {
    let (most, _) = key.strip_prefix("permits/")?.split_once('/')?;
    most.parse().ok()
}
