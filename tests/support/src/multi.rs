//! Sets of locks that overlap at random.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::Path,
    time::Duration,
};

use ringfence_client::Client;
use tokio::{
    task::{JoinSet, yield_now},
    time::timeout,
};

/// Few, so that most sets overlap.
const KEYS: u64 = 6;

/// Sets that each client takes.
const ROUNDS: u64 = 40;

/// Each of `clients` takes sets of 1 to 4 of 6 keys, in random order, and all are done `within`. The holder of a key has a
/// file of its name in the directory `held`, which may be shared with other processes.
///
/// # Panics
///
/// Two had a key at the same time, or they were not done: some waited for each other.
pub async fn share_random_sets(clients: Vec<Client>, seed: u64, held: &Path, within: Duration) {
    let mut tasks = JoinSet::new();
    for (task, client) in (0..).zip(clients) {
        let held = held.to_owned();
        tasks.spawn(async move {
            let mut random = seed.wrapping_mul(1000) + task;
            for _ in 0..ROUNDS {
                let keys = random_keys(&mut random);
                let guard = client
                    .multi_lock(keys.iter().copied())
                    .acquire()
                    .await
                    .unwrap();
                let different: BTreeSet<_> = keys.iter().collect();
                for key in &different {
                    let alone = File::create_new(held.join(key.to_string()));
                    assert!(alone.is_ok(), "two have {key}: {alone:?}");
                }
                yield_now().await;
                assert!(guard.is_held());
                for key in &different {
                    fs::remove_file(held.join(key.to_string())).unwrap();
                }
                guard.release().await;
            }
        });
    }
    let done = timeout(within, tasks.join_all()).await;
    assert!(done.is_ok(), "seed {seed}: not done within {within:?}");
}

/// 1 to 4 keys, possibly equal.
fn random_keys(random: &mut u64) -> Vec<u64> {
    let mut next = |below| {
        // splitmix64
        *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    };
    let count = 1 + next(4);
    (0..count).map(|_| next(KEYS)).collect()
}
