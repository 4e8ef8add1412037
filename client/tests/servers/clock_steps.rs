//! A server's wall clock steps: leases and the recovery period end by it.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_client::{
    AcquireError, BootClock, Client, Clock, Danger, Guard, Instant, Namespace, ReleaseAnswer,
};
use ringfence_test_support::{Servers, WallClock, eventually};

use super::DEADLINE;

const MAX_LEASE: Duration = Duration::from_secs(3);

/// One server by a clock of its own.
struct Clocked {
    servers: Servers,
    clock: WallClock,
}

impl Clocked {
    async fn new() -> Self {
        let clock = WallClock::default();
        let servers = Servers::spawn_with(1, |builder| clock.set_up(builder)).await;
        Self { servers, clock }
    }

    async fn client(&self) -> Client {
        let builder = self.servers.builder().max_lease(MAX_LEASE);
        builder.build().await.unwrap()
    }

    /// A guard of a process that stops, renewed just before.
    async fn stopped_holder(&self) -> Guard {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let holding = runtime.spawn({
            let builder = self.servers.builder().max_lease(MAX_LEASE);
            async move {
                let client = builder.build().await.unwrap();
                let guard = client.lock("key").acquire().await.unwrap();
                renewed(&guard).await;
                guard
            }
        });
        let guard = holding.await.unwrap();
        runtime.shutdown_background();
        guard
    }
}

/// Waits until `client` is told that the server recovers.
async fn in_recovery(client: &Client, key: &str) {
    eventually("in recovery", async || {
        let refused = client.lock(key).try_acquire().await;
        matches!(refused, Err(AcquireError::Grace { .. }))
    })
    .await;
}

/// Waits until `guard` has been renewed once more.
async fn renewed(guard: &Guard) {
    let before = guard.deadline();
    eventually("renewed", async || guard.deadline() > before).await;
}

/// The epoch that the only shard is armed with.
fn epoch(client: &Client) -> u64 {
    let topology = client.topology();
    let entry = topology.shards.values().next().unwrap();
    entry.epoch.0
}

#[tokio::test]
async fn a_clock_that_steps_puts_guards_in_danger_and_arms_the_shard_anew_once() {
    join_all([700, -700, -3_000, 3_600_000, -3_600_000].map(steps_once)).await;
}

async fn steps_once(by_ms: i64) {
    let server = Clocked::new().await;
    let (one, other) = (server.client().await, server.client().await);
    let guards = [
        one.lock("one").acquire().await.unwrap(),
        one.lock("too").acquire().await.unwrap(),
        other.lock("other").acquire().await.unwrap(),
    ];
    for guard in &guards {
        renewed(guard).await;
    }
    let before = epoch(&one);
    server.clock.set_millis(by_ms);
    let [a, b, c] = &guards;
    let dangers = tokio::join!(a.danger(), b.danger(), c.danger());
    let dangers: [Danger; 3] = dangers.into();
    // A step of more than the lease ends the records: the guards may be lost at once. A process that finds the shard
    // armed anew by the other has no renewal answered before.
    let early = |danger| matches!(danger, &Danger::ClockStepped | &Danger::RenewalFailed);
    assert!(
        by_ms > 2_000 || dangers.contains(&Danger::ClockStepped) && dangers.iter().all(early),
        "{by_ms}: {dangers:?}"
    );
    eventually("armed anew", async || {
        epoch(&one) > before && epoch(&other) > before
    })
    .await;
    in_recovery(&one, "new").await;
    let armed = epoch(&one);
    let new = one.lock("new").wait(DEADLINE).acquire().await.unwrap();
    assert!(
        guards.iter().all(|guard| new.token() > guard.token()),
        "{by_ms}"
    );
    if by_ms < 2_000 {
        for guard in &guards {
            renewed(guard).await;
            assert!(guard.is_held(), "{by_ms}");
        }
    }
    assert_eq!(
        (epoch(&one), epoch(&other)),
        (armed, armed),
        "{by_ms}: armed anew twice"
    );
    assert_eq!(new.release().await, ReleaseAnswer::Held);
}

/// A client's clock, which loses time when the test says so.
#[derive(Debug, Default)]
struct LosingClock(AtomicU64);

impl LosingClock {
    fn lose(&self, length: Duration) {
        self.0.fetch_add(length.as_nanos() as u64, Relaxed);
    }
}

impl Clock for LosingClock {
    fn now(&self) -> Instant {
        BootClock.now() - Duration::from_nanos(self.0.load(Relaxed))
    }

    fn unix(&self) -> Duration {
        BootClock.unix()
    }
}

/// A machine that was paused, for its clock too. The servers go on as before: it alone is in danger.
#[tokio::test]
async fn a_client_whose_clock_steps_disturbs_nobody_else() {
    let servers = Servers::spawn(3).await;
    let (clock, by) = (Arc::new(LosingClock::default()), Duration::from_millis(700));
    let builder = || servers.builder().max_lease(MAX_LEASE);
    let client = builder().clock(clock.clone()).build().await.unwrap();
    let other = builder().build().await.unwrap();
    let mut guards = BTreeMap::new();
    for number in 0.. {
        let key = format!("key {number}");
        let shard = client.shard_of(&Namespace::default(), &key).unwrap();
        if let Entry::Vacant(vacant) = guards.entry(shard) {
            vacant.insert(client.lock(&key).acquire().await.unwrap());
        }
        if guards.len() == 3 {
            break;
        }
    }
    for guard in guards.values() {
        renewed(guard).await;
    }
    let before = other.topology().last_epoch;
    clock.lose(by);
    for guard in guards.values() {
        assert_eq!(guard.danger().await, Danger::ClockStepped);
    }
    for guard in guards.values() {
        renewed(guard).await;
        renewed(guard).await;
    }
    for client in [&client, &other] {
        let last = client.topology().last_epoch;
        assert_eq!(last, before, "a shard is armed anew");
    }
    for guard in guards.into_values() {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
}

/// Of one server alone nobody can tell whose clock it is. So a client with a bad clock has it armed anew once, under its name,
/// and not again and again.
#[tokio::test]
async fn one_client_has_a_shard_armed_anew_once_for_its_clock() {
    let servers = Servers::spawn(1).await;
    let clock = Arc::new(LosingClock::default());
    let builder = servers.builder().label("paused");
    let client = builder.clock(clock.clone()).build().await.unwrap();
    let lock = client.lock("key").lease(MAX_LEASE);
    let guard = lock.acquire().await.unwrap();
    renewed(&guard).await;
    let mut armed = Vec::new();
    for _ in 0..3 {
        clock.lose(Duration::from_millis(700));
        assert_eq!(guard.danger().await, Danger::ClockStepped);
        renewed(&guard).await;
        eventually("armed anew", async || client.topology().alarms.len() == 1).await;
        renewed(&guard).await;
        armed.push(epoch(&client));
    }
    assert!(armed.iter().all(|epoch| *epoch == armed[0]), "{armed:?}");
    let topology = client.topology();
    let alarm = topology.alarms.values().next().unwrap();
    assert_eq!(alarm.by, "paused");
    assert!(alarm.by_ms >= 600, "{alarm:?}");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// The holder of before believes in its lock for nearly a lease, and does not renew it.
#[tokio::test]
async fn a_step_forward_in_the_recovery_period_ends_it_no_earlier() {
    let mut server = Clocked::new().await;
    let witness = server.client().await;
    let _kept = witness.lock("kept").acquire().await.unwrap();
    let former = server.stopped_holder().await;
    server.servers.servers[0].restart().await.unwrap();
    in_recovery(&witness, "key").await;
    server.clock.set_millis(700);
    let next = witness.lock("key").wait(DEADLINE).acquire().await.unwrap();
    assert!(
        !former.is_held(),
        "two holders for {:?}",
        former.remaining()
    );
    assert!(next.token() > former.token());
}

/// Its holder is gone, and its end is an hour away. Nothing is armed anew for it.
#[tokio::test]
async fn a_record_ends_after_its_lease_although_the_clock_was_set_back() {
    let server = Clocked::new().await;
    let former = server.stopped_holder().await;
    server.clock.set_millis(-3_600_000);
    let client = server.client().await;
    let before = epoch(&client);
    let next = client.lock("key").wait(DEADLINE).acquire().await.unwrap();
    assert!(!former.is_held() && next.token() > former.token());
    assert_eq!(epoch(&client), before);
}
