//! A shard that comes back makes no new grants until the holders of before have had their time.

use std::{cell::RefCell, io, time::Duration};

use futures_util::future::try_join_all;
use ringfence_client::{AcquireError, Lock, ReleaseAnswer};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing_subscriber::filter::LevelFilter;

use super::{LEASE, SECOND, client_of, faults, held, is_recorded, simulated};

/// Comes back, empty or with its records, and is armed by the engine itself.
async fn come_back(client: &ringfence_client::Client, keep_records: bool) {
    let before = client.topology();
    faults(client).restart(keep_records);
    let mut refused = client.lock("probe").try_acquire().await;
    while !matches!(refused, Err(AcquireError::Grace { .. })) {
        assert!(refused.is_err(), "granted in grace");
        sleep(Duration::from_millis(10)).await;
        refused = client.lock("probe").try_acquire().await;
    }
    let after = client.topology();
    assert!(
        after.last_epoch > before.last_epoch,
        "a new life has a new epoch"
    );
}

#[tokio::test(start_paused = true)]
async fn no_new_grant_until_grace_is_over_and_then_a_greater_token() {
    let client = client_of(1).await;
    let before = held(&client, "key").await;
    let token = before.token();
    drop(before);
    come_back(&client, false).await;
    let back = Instant::now();
    let refused = client.lock("key").try_acquire().await.unwrap_err();
    assert!(
        matches!(&refused, AcquireError::Grace { shard, .. } if shard == "a"),
        "{refused:?}"
    );
    let guard = client.lock("key").acquire().await.unwrap();
    assert!(back.elapsed() > LEASE - SECOND, "{:?}", back.elapsed());
    assert!(guard.token() > token);
}

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = RefCell::default();
}

/// Keeps what is logged in this thread: a subscriber of one thread would miss events that others have registered.
struct Logged;

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_recovery_period_is_logged_once_with_what_makes_it_shorter() {
    let logs = tracing_subscriber::fmt().with_max_level(LevelFilter::WARN);
    logs.with_writer(|| Logged).init();
    let lines = |what: &str| {
        LOGGED.with_borrow(|logged| String::from_utf8_lossy(logged).matches(what).count())
    };
    let client = client_of(1).await;
    for times in 1..=2 {
        come_back(&client, false).await;
        let keys = ["one", "other"].map(|key| client.lock(key));
        drop(try_join_all(keys.iter().map(Lock::acquire)).await.unwrap());
        assert_eq!(
            lines("a shard that came back grants new locks after this"),
            times
        );
        assert_eq!(lines("A shorter max_lease"), times);
    }
}

#[tokio::test(start_paused = true)]
async fn grace_is_longer_by_the_replica_lag() {
    let lag = 3 * SECOND;
    let client = simulated(7, 1).replica_lag(lag).build().await.unwrap();
    drop(held(&client, "key").await);
    come_back(&client, false).await;
    let back = Instant::now();
    let _guard = client.lock("key").acquire().await.unwrap();
    assert!(
        back.elapsed() > LEASE + lag - SECOND,
        "{:?}",
        back.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_keeps_its_lock_through_a_restart() {
    for keep_records in [false, true] {
        let client = client_of(1).await;
        let guard = held(&client, "key").await;
        let token = guard.token();
        come_back(&client, keep_records).await;
        sleep(2 * LEASE).await;
        assert!(guard.is_held(), "keep_records: {keep_records}");
        assert_eq!(guard.token(), token);
        let refused = client.lock("key").wait(SECOND).acquire().await.unwrap_err();
        let AcquireError::TimedOut { because, .. } = refused else {
            panic!("{refused:?}")
        };
        assert!(matches!(*because, AcquireError::Held { .. }), "{because:?}");
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_released_in_grace_stays_released() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    come_back(&client, true).await;
    assert!(is_recorded(&client, "key").await);
    guard.release().await;
    sleep(2 * LEASE).await;
    assert!(!is_recorded(&client, "key").await);
}

/// A renewal that arrived after the release would put the record back.
#[tokio::test(start_paused = true)]
async fn no_release_in_grace_overtakes_a_renewal() {
    let client = client_of(1).await;
    let keys: Vec<String> = (0..50).map(|index| format!("key/{index}")).collect();
    let mut guards = Vec::new();
    for key in &keys {
        guards.push(client.lock(key).lease(10 * SECOND).acquire().await.unwrap());
    }
    come_back(&client, true).await;
    sleep(5 * SECOND).await; // renewed on new connections
    faults(&client).latency(SECOND / 10..2 * SECOND);
    sleep(2 * SECOND).await; // renewals are out

    let mut releases = JoinSet::new();
    for (guard, index) in guards.into_iter().zip(0..) {
        releases.spawn(async move {
            sleep(index * SECOND / 10).await;
            guard.release().await
        });
    }
    releases.join_all().await;
    faults(&client).latency(Duration::ZERO..Duration::ZERO);
    sleep(3 * SECOND).await;
    for key in &keys {
        assert!(!is_recorded(&client, key).await, "{key} came back");
    }
}
