//! A set of locks: all or nothing.

use std::{sync::Arc, time::Duration};

use ringfence_client::{
    AcquireError, Client, MultiGuard, MultiLockError, NameError, ReleaseAnswer, Waiting,
};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use ringfence_test_support::{cancel, multi::share_random_sets};
use tokio::{
    task::yield_now,
    time::{Instant, sleep, timeout},
};

use super::{SECOND, client_of, faults, freed_within, held, is_recorded, seeded};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

async fn all(client: &Client) -> MultiGuard {
    client.multi_lock(KEYS).try_acquire().await.unwrap()
}

async fn recorded(client: &Client) -> usize {
    let mut recorded = 0;
    for key in KEYS {
        recorded += usize::from(is_recorded(client, key).await);
    }
    recorded
}

/// Waits until none of the keys is recorded.
async fn all_freed(client: &Client) {
    for key in KEYS {
        freed_within(client, key, SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_has_a_token_for_each_key_and_one_end() {
    let client = client_of(3).await;
    let before = held(&client, "b").await;
    let token = before.token();
    before.release().await;
    let guard = client.multi_lock(["b", "a", "b"]).acquire().await.unwrap();
    let [first, second, third] = guard.tokens()[..] else {
        panic!("three keys were given")
    };
    assert!(first > token && first == third && first != second);
    assert!(guard.is_held() && guard.remaining() > Duration::ZERO);
    assert!(guard.danger_at() < guard.deadline());
    let inspected = client.lock("b").inspect().await.unwrap();
    assert_eq!(inspected.holder.unwrap().token, first);
    assert_eq!(guard.run_while_held(async { 7 }).await, Ok(7));
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    for key in ["a", "b"] {
        assert!(!is_recorded(&client, key).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_asks_all_shards_at_once() {
    let client = client_of(3).await;
    let latency = Duration::from_millis(50);
    for shard in client.faults().values() {
        shard.latency(latency..latency);
    }
    let began = Instant::now();
    let guard = all(&client).await;
    // Five keys one after the other would take ten.
    assert!(began.elapsed() <= 4 * latency, "{:?}", began.elapsed());
    guard.release().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_refused_in_part_holds_nothing() {
    let client = client_of(3).await;
    for key in KEYS {
        let holder = held(&client, key).await;
        let refused = client.multi_lock(KEYS).try_acquire().await.unwrap_err();
        assert!(refused.is_retryable());
        match refused {
            MultiLockError::NotAcquired { key: of, error } => {
                assert_eq!(of.key(), key.as_bytes());
                assert!(matches!(error, AcquireError::Held { .. }), "{error:?}");
            }
            other => panic!("{other:?}"),
        }
        drop(holder);
        all_freed(&client).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_times_out_holds_nothing() {
    let client = client_of(3).await;
    for key in KEYS {
        let holder = held(&client, key).await;
        let began = Instant::now();
        let lock = client.multi_lock(KEYS).wait(2 * SECOND);
        let late = lock.acquire().await.unwrap_err();
        assert!(began.elapsed() < 3 * SECOND);
        let late = late.to_string();
        let expected = format!("{key}: not acquired within 2s: held by test for at most ");
        assert!(late.starts_with(&expected), "{late}");
        drop(holder);
        all_freed(&client).await;
    }
}

/// One after the other, so that each key is once the one waited for.
#[tokio::test(start_paused = true)]
async fn a_set_waits_for_each_of_its_holders() {
    let client = client_of(3).await;
    let mut holders = Vec::new();
    for key in KEYS {
        holders.push(held(&client, key).await);
    }
    let reasons = Arc::new(parking_lot::Mutex::new(Vec::<Waiting>::new()));
    let seen = reasons.clone();
    let lock = client.multi_lock(KEYS);
    let lock = lock.on_wait(move |waiting| seen.lock().push(waiting));
    let released = async {
        for holder in holders {
            sleep(SECOND).await;
            holder.release().await;
        }
    };
    let (guard, ()) = tokio::join!(lock.acquire(), released);
    assert!(guard.unwrap().is_held());
    assert!(!reasons.lock().is_empty());
    all_freed(&client).await;
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_one_key_is_the_loss_of_the_set() {
    let client = client_of(3).await;
    for key in KEYS {
        let guard = client.multi_lock(KEYS).lease(3 * SECOND);
        let guard = guard.acquire().await.unwrap();
        let taken = client.lock(key).force_release("test").await.unwrap();
        assert_eq!(taken.len(), 1);
        timeout(3 * SECOND, guard.lost()).await.unwrap();
        guard.danger().await;
        assert!(!guard.is_held() && guard.remaining().is_zero());
        assert!(guard.run_while_held(async {}).await.is_err());
        assert_eq!(guard.release().await, ReleaseAnswer::Lost);
        all_freed(&client).await;
    }
}

/// Every lease of the set ends while the caller waits for its last key.
#[tokio::test(start_paused = true)]
async fn a_key_lost_during_the_wait_ends_it() {
    let client = client_of(3).await;
    let mut in_order = KEYS.map(|key| {
        let namespace = ringfence_client::Namespace::default();
        let slots = client.topology().table.slots();
        ringfence_client::LockKey::new(&namespace, key.as_bytes(), slots).unwrap()
    });
    in_order.sort();
    let last = held(&client, &String::from_utf8_lossy(in_order[4].key())).await;
    let lock = client.multi_lock(KEYS).lease(3 * SECOND);
    let mut waiting = Box::pin(lock.acquire());
    timeout(SECOND, &mut waiting).await.unwrap_err();
    assert_eq!(recorded(&client).await, 5);
    let first = client.lock(in_order[0].key());
    first.force_release("test").await.unwrap();
    let lost = timeout(4 * SECOND, waiting).await.unwrap().unwrap_err();
    assert!(lost.is_retryable());
    assert!(
        matches!(&lost, MultiLockError::Lost { key } if *key == in_order[0]),
        "{lost:?}"
    );
    drop(last);
    all_freed(&client).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_two_namespaces_are_two_locks() {
    let client = client_of(3).await;
    let lock = client.multi_lock(["key"]).namespace("one");
    let guard = lock.with("two", "key").acquire().await.unwrap();
    assert_eq!(guard.tokens().len(), 2);
    for namespace in ["one", "two"] {
        let lock = client.lock("key").namespace(namespace);
        lock.try_acquire().await.unwrap_err();
    }
    drop(held(&client, "key").await);
    drop(guard);
    let refused = client.multi_lock(["key"]).with("No", "key").acquire().await;
    assert!(
        matches!(
            refused,
            Err(MultiLockError::Name(NameError::Namespace(ref name))) if name == "No"
        ),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_without_keys_or_with_too_many_is_refused() {
    let client = client_of(1).await;
    let none = client.multi_lock([""; 0]).acquire().await.unwrap_err();
    assert!(matches!(none, MultiLockError::NoKeys));
    let many = client.multi_lock(0..65).acquire().await.unwrap_err();
    assert!(matches!(many, MultiLockError::TooManyKeys(65)));
    let most = client.multi_lock(0..64).acquire().await.unwrap();
    assert_eq!(most.tokens().len(), 64);
    let short = client.multi_lock(KEYS).lease(Duration::from_nanos(1));
    let short = short.acquire().await.unwrap_err();
    assert!(!short.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn a_set_dropped_after_any_turn_holds_nothing() {
    let client = client_of(1).await;
    faults(&client).latency(Duration::from_millis(5)..Duration::from_millis(9));
    cancel::a_dropped_multi_lock_holds_nothing(&client, &client, &turn).await;
}

/// Dropped while some keys are held, and one is waited for.
#[tokio::test(start_paused = true)]
async fn a_waiting_set_dropped_after_any_turn_holds_nothing() {
    let client = client_of(1).await;
    faults(&client).latency(Duration::from_millis(5)..Duration::from_millis(9));
    after_every_turn("a set with a held key", async |turns| {
        let holder = held(&client, "c").await;
        let lock = client.multi_lock(KEYS);
        let let_go = async {
            for _ in 0..40 {
                turn().await;
            }
            drop(holder);
        };
        let (waited, ()) = tokio::join!(dropped_after(turns, turn, lock.acquire()), let_go);
        let done = waited.is_some();
        drop(waited);
        all_freed(&client).await;
        done
    })
    .await;
}

async fn turn() {
    yield_now().await;
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_with_overlapping_sets_never_wait_in_a_circle() {
    for seed in 0..8 {
        let client = seeded(seed, 3).await;
        let clients = vec![client.clone(); 8];
        let held = tempfile::tempdir().unwrap();
        share_random_sets(clients, seed, held.path(), 60 * SECOND).await;
        client.close().await;
    }
}
