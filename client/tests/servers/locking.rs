//! Processes exclude each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_client::{AcquireError, Owner, ReleaseAnswer};
use ringfence_test_support::{Servers, eventually};
use tokio::task::JoinSet;

use super::take_and_give_back;

/// Of a lock whose renewals are waited for.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_one_of_many_clients_holds_a_lock_and_tokens_rise() {
    let servers = Servers::spawn(3).await;
    let inside = Arc::new(AtomicU64::new(0));
    let last_token = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for index in 0..24 {
        let client = servers.client().await;
        let (inside, last_token) = (inside.clone(), last_token.clone());
        tasks.spawn(async move {
            for _ in 0..20 {
                let guard = client.lock("hot").acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two holders");
                let former = last_token.swap(guard.token().get(), SeqCst);
                assert!(guard.token().get() > former, "tokens rise");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, SeqCst);
                if index % 2 == 0 {
                    assert_eq!(guard.release().await, ReleaseAnswer::Held);
                }
            }
            client.close().await;
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_guard_outlives_its_lease_and_then_is_free_at_once() {
    let servers = Servers::spawn(1).await;
    let (holder, other) = (servers.client().await, servers.client().await);
    let guard = holder
        .lock("key")
        .lease(LEASE)
        .label("payroll")
        .acquire()
        .await
        .unwrap();
    let end = guard.deadline();
    eventually("renewed beyond its lease", async || {
        assert!(guard.is_held());
        guard.deadline() > end + LEASE
    })
    .await;
    let refused = other.lock("key").try_acquire().await.unwrap_err();
    let AcquireError::Held { holder: label, .. } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(label.as_str(), "payroll");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    take_and_give_back(&other, "key").await;
}

#[tokio::test]
async fn an_owner_enters_again() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let owner = Owner::new();
    let outer = client.lock("key").owner(&owner).acquire().await.unwrap();
    let inner = client.lock("key").owner(&owner).acquire().await.unwrap();
    assert_eq!(inner.token(), outer.token());
    drop(inner);
    assert_eq!(outer.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn keys_of_any_bytes_are_keys_of_their_own() {
    let servers = Servers::spawn(2).await;
    let client = servers.client().await;
    let keys: [&[u8]; 8] = [
        b"a",
        b"a\0",
        b"a\r\n",
        b"{1}:default:a",
        b"*",
        b"\xff\xfe",
        b"a|b",
        b"default:a",
    ];
    let mut guards = Vec::new();
    for key in keys {
        guards.push(client.lock(key).try_acquire().await.unwrap());
    }
    for (key, guard) in keys.iter().zip(guards) {
        assert_eq!(
            guard.release().await,
            ReleaseAnswer::Held,
            "{}",
            key.escape_ascii()
        );
    }
}

#[tokio::test]
async fn a_lock_taken_by_force_is_lost_to_its_holder() {
    let servers = Servers::spawn(1).await;
    let (holder, operator) = (servers.client().await, servers.client().await);
    let guard = holder.lock("key").lease(LEASE).acquire().await.unwrap();
    let former = operator.lock("key").force_release("a test").await.unwrap();
    assert_eq!(former[0].token, guard.token());
    let next = operator.lock("key").try_acquire().await.unwrap();
    assert!(next.token() > guard.token());
    guard.lost().await;
    assert_eq!(guard.release().await, ReleaseAnswer::Lost);
    assert!(next.is_held());
}
