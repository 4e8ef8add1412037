//! A server's wall clock steps: leases and the recovery period end by it.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, Danger, Guard, ReleaseAnswer};
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
    for by_ms in [700, -700, -3_000, 3_600_000, -3_600_000] {
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
