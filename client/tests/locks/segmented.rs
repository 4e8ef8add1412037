//! A segmented lock on embedded shards. Its rules are tested with them, in `segment-lock`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ringfence_client::{
    AcquireError, Client, Contention, Namespace, ReleaseAnswer, SegmentedLock, SegmentedLockError,
};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use tokio::{
    task::{JoinSet, yield_now},
    time::sleep,
};

use super::{SECOND, client_of, faults, held};

async fn split(client: &Client, segments: u32) -> SegmentedLock {
    let created = client.segmented_lock("stock/7").create(segments).await;
    created.unwrap()
}

/// How many sub-locks are on each shard.
async fn spread(client: &Client, lock: &SegmentedLock) -> BTreeMap<String, u32> {
    let split = lock.split().await.unwrap();
    let mut counts = BTreeMap::new();
    for segment in 0..split.made() {
        let key = split.key_of("stock/7", segment).unwrap();
        let shard = client.shard_of(&Namespace::default(), key).unwrap();
        *counts.entry(shard.to_string()).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn sub_locks_are_spread_over_the_shards() {
    let client = client_of(4).await;
    let lock = split(&client, 10).await;
    let counts = spread(&client, &lock).await;
    assert!(counts.values().all(|count| *count <= 4), "{counts:?}");
    lock.resize(32).run().await.unwrap();
    let counts = spread(&client, &lock).await;
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|count| *count <= 9), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sub_lock_is_a_lock_like_any_other() {
    let client = client_of(2).await;
    let lock = split(&client, 2).await;
    let guard = lock.at(1).acquire().await.unwrap();
    let split = lock.split().await.unwrap();
    let key = split.key_of("stock/7", 1).unwrap();
    let refused = client.lock(&key).try_acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }), "{refused:?}");

    sleep(100 * SECOND).await;
    assert!(guard.is_held(), "it is renewed");
    let token = guard.token();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    assert!(held(&client, &key).await.token() > token);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_reported_to_the_holder_of_all() {
    let client = client_of(2).await;
    let lock = split(&client, 3).await;
    let all = lock.all().acquire().await.unwrap();
    let key = lock.split().await.unwrap().key_of("stock/7", 2).unwrap();
    let taken = client.lock(&key).force_release("a test").await.unwrap();
    assert_eq!(taken.len(), 1);
    all.lost().await;
    assert!(!all.is_held());
    let [first, second, third] = all.release().await[..] else {
        panic!("there are three")
    };
    assert_eq!((first, second), (ReleaseAnswer::Held, ReleaseAnswer::Held));
    assert_eq!(third, ReleaseAnswer::Lost);
}

#[tokio::test(start_paused = true)]
async fn many_tasks_use_all_of_them_and_it_can_be_seen() {
    let client = client_of(2).await;
    let lock = Arc::new(split(&client, 4).await);
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let lock = lock.clone();
        tasks.spawn(async move {
            for _ in 0..4 {
                let guard = lock.any().acquire().await.unwrap();
                sleep(Duration::from_millis(3)).await;
                guard.release().await;
            }
        });
    }
    tasks.join_all().await;
    let met = lock.contention();
    let acquisitions: Vec<u64> = met.iter().map(|its| its.acquisitions).collect();
    assert_eq!(acquisitions.iter().sum::<u64>(), 256);
    assert!(
        acquisitions.iter().all(|count| *count >= 32),
        "{acquisitions:?}"
    );
    let waited = |its: &Contention| its.waits > 0 && its.waited > Duration::ZERO && its.here == 0;
    assert!(met.iter().all(waited), "{met:?}");
}

/// Waiters of other processes count too.
#[tokio::test(start_paused = true)]
async fn a_wait_for_others_is_a_wait() {
    let client = client_of(1).await;
    let (ours, theirs) = (split(&client, 1).await, split(&client, 1).await);
    let guard = theirs.at(0).acquire().await.unwrap();
    let refused = ours.any().wait(SECOND).acquire().await.unwrap_err();
    assert!(
        matches!(refused, SegmentedLockError::NotAcquired { segment: 0, .. }),
        "{refused:?}"
    );
    assert!(refused.is_retryable());
    let late = async {
        sleep(SECOND).await;
        drop(guard);
    };
    let at = ours.at(0);
    let (taken, ()) = tokio::join!(at.acquire(), late);
    drop(taken.unwrap());
    let met = ours.contention()[0];
    assert_eq!((met.acquisitions, met.waits), (1, 1));
    assert!(met.waited >= SECOND / 2, "{met:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_in_another_namespace_is_another_lock() {
    let client = client_of(2).await;
    let lock = split(&client, 2).await;
    let namespace = Namespace::new("orders").unwrap();
    let other = client.segmented_lock("stock/7").namespace(&namespace);
    let other = other
        .lease(SECOND)
        .label("payroll")
        .create(3)
        .await
        .unwrap();
    let all = lock.all().acquire().await.unwrap();
    assert_eq!(other.all().try_acquire().await.unwrap().segments().len(), 3);
    assert_eq!(all.release().await, [ReleaseAnswer::Held; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_counter_of_the_same_name_is_something_else() {
    let client = client_of(2).await;
    let counters = client.counters();
    let terms = ringfence_client::counter::Terms::in_memory();
    counters.create("stock/7", terms, 2).await.unwrap();
    let lock = split(&client, 3).await;
    assert_eq!(lock.all().acquire().await.unwrap().segments().len(), 3);
    // The name of its record is no account's.
    let refused = counters.create("stock/7#locks", terms, 2).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("must be without an end"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn futures_dropped_after_any_turn_hold_nothing() {
    let client = client_of(1).await;
    let lock = split(&client, 3).await;
    faults(&client).latency(Duration::from_millis(5)..Duration::from_millis(9));
    let turn = async || {
        sleep(Duration::from_millis(1)).await;
        yield_now().await;
    };
    let free = async || {
        let all = lock.all().wait(5 * SECOND).acquire().await;
        drop(all.unwrap_or_else(|error| panic!("something is held: {error}")));
    };
    after_every_turn("any", async |turns| {
        let any = lock.any();
        let taken = dropped_after(turns, &turn, any.acquire()).await;
        let is_done = taken.map(|taken| drop(taken.unwrap())).is_some();
        free().await;
        is_done
    })
    .await;
    after_every_turn("all", async |turns| {
        let all = lock.all();
        let taken = dropped_after(turns, &turn, all.acquire()).await;
        let is_done = taken.map(|taken| drop(taken.unwrap())).is_some();
        free().await;
        is_done
    })
    .await;
}
