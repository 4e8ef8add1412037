//! How many commands a release costs.

use std::collections::BTreeMap;

use redis::InfoDict;
use ringfence_coordinator::{
    ids::MapVersion,
    limits::BATCH_MAX,
    name::LockKey,
    shard::{Reply, Request},
};

use super::{Desk, acquire, key, release};

/// The calls that `desk`'s server made of each command since it was last asked.
async fn calls(desk: &mut Desk) -> BTreeMap<String, u64> {
    let stats: InfoDict = desk.ask(&["INFO", "commandstats"]).await;
    let () = desk.ask(&["CONFIG", "RESETSTAT"]).await;
    let of = |(name, value): (&String, &redis::Value)| {
        let name = name.strip_prefix("cmdstat_")?.to_owned();
        let text: String = redis::from_redis_value_ref(value).ok()?;
        let calls = text
            .strip_prefix("calls=")?
            .split(',')
            .next()?
            .parse()
            .ok()?;
        Some((name, calls))
    };
    stats.iter().filter_map(of).collect()
}

/// What each command is called, from a release of a key for which `waiters` wait to the next one.
async fn release_calls(waiters: u64) -> BTreeMap<String, u64> {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    let all: Vec<_> = (0..=waiters).map(|one| acquire(&key, one)).collect();
    for batch in all.chunks(BATCH_MAX) {
        desk.batch(batch).await;
    }
    calls(&mut desk).await;
    assert_eq!(
        desk.one(release(&key, 0)).await,
        Reply::Released { held: true }
    );
    let calls = calls(&mut desk).await;
    // Each that waited gets it in turn, by the release of the one before.
    for one in 1..=waiters {
        assert_eq!(
            desk.one(release(&key, one)).await,
            Reply::Released { held: true },
            "{one}"
        );
    }
    calls
}

#[tokio::test]
async fn a_release_costs_as_many_commands_however_many_wait() {
    let few = release_calls(2).await;
    assert_eq!(few["fcall"], 1);
    assert_eq!(few["publish"], 1);
    assert_eq!(few["set"], 1, "the next one's record");
    assert_eq!(release_calls(20).await, few);
    assert_eq!(release_calls(200).await, few);
}

#[tokio::test]
async fn where_nobody_waits_a_batch_costs_what_it_did_without_queues() {
    let (mut desk, keys) = (Desk::quiet().await, [key("a"), key("b"), key("c")]);
    calls(&mut desk).await;
    let taken = keys.each_ref().map(|key| acquire(key, 1));
    desk.batch(&taken).await;
    let asked = [("config|resetstat", 1), ("fcall", 1), ("info", 1)];
    let expected = |more: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let all = asked.iter().chain(more);
        all.map(|(name, calls)| ((*name).to_owned(), *calls))
            .collect()
    };
    assert_eq!(
        calls(&mut desk).await,
        expected(&[("mget", 1), ("incrby", 1), ("set", 3)])
    );
    let back = keys.each_ref().map(|key| release(key, 1));
    desk.batch(&back).await;
    assert_eq!(calls(&mut desk).await, expected(&[("mget", 1), ("del", 1)]));
}

/// Two locks are given back and two are taken, a pair of them by a map version that has its slot looked at.
fn exchange(given_back: [&LockKey; 2], taken: [&LockKey; 2]) -> [Request; 4] {
    let [mut looked_at, mut too] = [release(given_back[1], 1), acquire(taken[1], 2)];
    looked_at.map = MapVersion::UNKNOWN;
    too.map = MapVersion::UNKNOWN;
    let [one, other] = [release(given_back[0], 1), acquire(taken[0], 2)];
    [other, one, too, looked_at]
}

/// A release must not wait for memory.
#[tokio::test]
async fn on_a_full_server_locks_are_given_back_beside_those_that_cannot_be_taken() {
    let mut desk = Desk::quiet().await;
    let [one, other, third, fourth] = ["a", "b", "c", "d"].map(key);
    desk.batch(&[acquire(&one, 1), acquire(&other, 1)]).await;
    let () = desk.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let batch = exchange([&one, &other], [&third, &fourth]);
    let (full, back) = (Reply::OutOfMemory, Reply::Released { held: true });
    assert_eq!(
        desk.batch(&batch).await,
        [full.clone(), back.clone(), full, back]
    );
    let () = desk.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    for reply in desk.batch(&[acquire(&one, 3), acquire(&other, 3)]).await {
        assert!(matches!(reply, Reply::Granted { .. }), "{reply:?}");
    }
}
