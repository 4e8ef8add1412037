//! A lock whose holder is outside of the process that was granted it, and that another process goes
//! on with.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, DetachedLease, LeaseRef, ReleaseAnswer};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Servers, ask, eventually};
use tokio::time::{sleep, timeout};

use super::{DEADLINE, SECOND};

const KEY: &str = "key";
/// Of a lock that is kept by a renewal every tenth of a second, and whose end is waited for.
const LEASE: Duration = Duration::from_secs(6);

/// Two processes.
struct Scene {
    servers: Servers,
    one: Client,
    two: Client,
}

impl Scene {
    async fn set() -> Self {
        let servers = Servers::spawn(2).await;
        let (one, two) = (servers.client().await, servers.client().await);
        Self { servers, one, two }
    }

    /// The record's expiry, if there is a record.
    async fn left(&self) -> Option<Duration> {
        let found = self.two.lock(KEY).inspect().await.unwrap();
        found.holder.map(|holder| holder.remaining)
    }
}

async fn detached(client: &Client, lease: Duration) -> DetachedLease {
    let guard = client.lock(KEY).lease(lease).acquire().await.unwrap();
    guard.detach()
}

async fn resumed(client: &Client, lease: &LeaseRef) -> DetachedLease {
    let resumed = client.resume(lease, DEADLINE).await.unwrap();
    resumed.expect("it is held")
}

async fn is_held_by_another(client: &Client) -> bool {
    let refused = client.lock(KEY).try_acquire().await;
    matches!(refused, Err(AcquireError::Held { .. }))
}

#[tokio::test]
async fn another_process_keeps_a_lock_beyond_the_end_of_the_first() {
    let scene = Scene::set().await;
    let first = detached(&scene.one, LEASE).await;
    let second = resumed(&scene.two, &first.reference()).await;
    assert_eq!(second.token(), first.token());
    let keeps = async {
        loop {
            sleep(SECOND / 10).await;
            second.renew().await.unwrap();
        }
    };
    let lasts = async {
        first.lost().await;
        // The first process has nothing to say about the record any more.
        sleep(SECOND).await;
        assert!(is_held_by_another(&scene.one).await);
        drop(first);
        sleep(SECOND / 2).await;
    };
    tokio::select! {
        () = lasts => {}
        () = keeps => {}
    }
    assert!(second.is_held() && is_held_by_another(&scene.one).await);
    assert_eq!(second.release().await, ReleaseAnswer::Held);
    assert!(scene.left().await.is_none());
}

#[tokio::test]
async fn a_lock_is_renewed_only_when_its_holder_asks() {
    let scene = Scene::set().await;
    let lease = detached(&scene.one, SECOND).await;
    let next = timeout(DEADLINE, scene.two.lock(KEY).acquire()).await;
    let next = next.expect("it ends").unwrap();
    assert!(!lease.is_held() && next.token() > lease.token());
    assert!(lease.renew().await.is_err());
    assert_eq!(lease.release().await, ReleaseAnswer::Lost);
    assert!(next.is_held());
}

#[tokio::test]
async fn a_renewal_reaches_the_shard_and_a_repeat_does_not() {
    let scene = Scene::set().await;
    let lease = detached(&scene.one, 30 * SECOND).await;
    // A renewal that comes soon after the last one is a repeat.
    eventually("it reaches the shard", async || {
        let left = scene.left().await.unwrap();
        lease.renew().await.unwrap();
        scene.left().await.unwrap() > left
    })
    .await;
    let before = calls(&scene.servers).await;
    for _ in 0..100 {
        lease.renew().await.unwrap();
    }
    assert_eq!(calls(&scene.servers).await, before);
}

/// The script calls that all servers have served.
async fn calls(servers: &Servers) -> Vec<String> {
    let mut calls = Vec::new();
    for server in &servers.servers {
        let stats: String = ask(server, &["INFO", "commandstats"]).await;
        let served = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_fcall:"));
        calls.extend(served.and_then(|line| Some(line.split_once(',')?.0.to_owned())));
    }
    calls
}

#[tokio::test]
async fn waiters_of_the_same_process_wait_for_the_shard() {
    let scene = Scene::set().await;
    let first = detached(&scene.one, 30 * SECOND).await;
    let lock = scene.one.lock(KEY);
    let waits = lock.acquire();
    let second = resumed(&scene.two, &first.reference()).await;
    tokio::pin!(waits);
    let queued = eventually("the waiter is queued at the shard", || async {
        let found = scene.two.lock(KEY).inspect().await.unwrap();
        found.waiters.len() == 1
    });
    tokio::select! {
        biased;
        granted = &mut waits => panic!("{granted:?}"),
        () = queued => {}
    }
    second.renew().await.unwrap();
    assert_eq!(second.release().await, ReleaseAnswer::Held);
    let granted = timeout(DEADLINE, waits).await.unwrap().unwrap();
    assert!(granted.token() > first.token());
}

#[tokio::test]
async fn a_released_lock_is_not_resumed() {
    let scene = Scene::set().await;
    let first = detached(&scene.one, 30 * SECOND).await;
    let lease = first.reference();
    assert_eq!(
        scene.two.release(&lease).await.unwrap(),
        ReleaseAnswer::Held
    );
    assert_eq!(
        scene.two.release(&lease).await.unwrap(),
        ReleaseAnswer::Lost
    );
    assert!(scene.two.resume(&lease, DEADLINE).await.unwrap().is_none());
    let next = scene.two.lock(KEY).try_acquire().await.unwrap();
    assert!(scene.one.resume(&lease, DEADLINE).await.unwrap().is_none());
    // Neither the renewal nor the release of the first touches the next.
    sleep(SECOND).await;
    assert_eq!(first.release().await, ReleaseAnswer::Lost);
    assert!(next.is_held());
    assert_eq!(next.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn an_old_lock_is_not_put_back_in_a_recovery_period() {
    let server = RedisServer::spawn().await.unwrap();
    let client = || async {
        let builder = Client::builder().redis([server.url()]);
        let built = builder.servers_are_new(true).max_lease(10 * SECOND).build();
        built.await.unwrap()
    };
    let (one, two) = (client().await, client().await);
    let old = detached(&one, SECOND).await.reference();
    eventually("its lease ends", || async {
        !is_held_by_another(&two).await
    })
    .await;
    let next = two.lock(KEY).acquire().await.unwrap();
    ask::<()>(&server, &["FLUSHALL"]).await;
    eventually("the shard recovers", || async {
        let refused = two.lock("other").try_acquire().await;
        matches!(refused, Err(AcquireError::Grace { .. }))
    })
    .await;
    match one.resume(&old, Duration::ZERO).await {
        // The holder was faster.
        Ok(None) => {}
        // The recovery period, or a topology from before it.
        Err(error) => assert!(error.is_retryable(), "{error:?}"),
        Ok(Some(_)) => panic!("the old lock was put back"),
    }
    eventually("the holder has put its lock back", || async {
        is_held_by_another(&one).await
    })
    .await;
    assert!(next.is_held());
    assert_eq!(next.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_fixed_hold_ends_at_every_process() {
    let scene = Scene::set().await;
    let lock = scene
        .one
        .lock(KEY)
        .lease(LEASE)
        .hold_for(LEASE + 2 * SECOND);
    let first = lock.acquire().await.unwrap().detach();
    let start = tokio::time::Instant::now();
    let second = resumed(&scene.two, &first.reference()).await;
    let ends = async {
        while second.renew().await.is_ok() {
            sleep(SECOND / 10).await;
        }
    };
    timeout(DEADLINE, ends).await.expect("it ends");
    assert!(start.elapsed() > LEASE, "it was renewed");
    eventually("its record ends", || async { scene.left().await.is_none() }).await;
}
