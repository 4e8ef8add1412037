//! Locks with three replicas on real servers, of which one at a time is killed or stopped, or has its clock jump.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use ringfence_client::{
    AcquireError, BuildError, Client, Guard, LiveReplicas, ReleaseAnswer, ReplicaInspection, Token,
};
use ringfence_test_support::{Servers, WallClock, end_recovery, eventually};
use tokio::{
    task::JoinSet,
    time::{Duration, sleep},
};

use super::{DEADLINE, SECOND};

/// Every lease, and so the recovery period of a server, unless a test ends that.
const LEASE: Duration = Duration::from_secs(15);
/// The same in tests that wait for the end of a recovery period.
const SHORT: Duration = Duration::from_secs(2);

async fn client(servers: &Servers) -> Client {
    with_leases(servers, LEASE).await
}

async fn with_leases(servers: &Servers, lease: Duration) -> Client {
    let builder = servers.builder().max_lease(lease).replicas("ledger", 3);
    builder.build().await.unwrap()
}

/// Waits until no server is away, or recovers.
async fn all_grant(client: &Client) {
    eventually("no server recovers", async || {
        let shards = client.shards().await;
        let mut shards = shards.values();
        shards.all(|shard| shard.error.is_none() && shard.grace_left.is_zero())
    })
    .await;
}

async fn acquire(client: &Client, key: &str, wait: Duration) -> Result<Guard, AcquireError> {
    client
        .lock(key)
        .namespace("ledger")
        .wait(wait)
        .acquire()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_server_killed_locks_are_granted_and_kept_without_a_recovery_period() {
    let mut servers = Servers::spawn(3).await;
    let (one, other) = (client(&servers).await, client(&servers).await);
    for killed in 0..3 {
        let kept = acquire(&one, "kept", DEADLINE).await.unwrap();
        servers.servers[killed].kill();
        let key = format!("key {killed}");
        // The server stays away: no recovery period is waited for.
        let guard = acquire(&one, &key, DEADLINE).await.unwrap();
        let refused = acquire(&other, &key, SECOND / 5).await.unwrap_err();
        assert!(
            matches!(refused, AcquireError::TimedOut { .. }),
            "{refused:?}"
        );
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
        let next = acquire(&other, &key, DEADLINE).await.unwrap();
        is_renewed(&kept).await;
        is_renewed(&next).await;
        servers.servers[killed].restart().await.unwrap();
        eventually("it recovers", async || {
            let shards = one.shards().await;
            let mut left = shards.values().map(|shard| shard.grace_left);
            left.any(|left| !left.is_zero())
        })
        .await;
        for (key, guard) in [("kept", &kept), (key.as_str(), &next)] {
            assert!(guard.is_held(), "{key}");
        }
        end_recovery(&servers.servers[killed].url()).await;
        all_grant(&one).await;
        // It is one of three again only once holders have written their locks there.
        for (key, guard) in [("kept", &kept), (key.as_str(), &next)] {
            eventually("its record is everywhere", async || {
                is_everywhere(&one, key, guard).await
            })
            .await;
            assert!(guard.is_held(), "{key}");
        }
        assert_eq!(next.release().await, ReleaseAnswer::Held);
        assert_eq!(kept.release().await, ReleaseAnswer::Held);
    }
}

async fn is_renewed(guard: &Guard) {
    let before = guard.deadline();
    eventually("renewed", async || guard.deadline() > before).await;
}

/// The last guard of the key, and its token.
#[derive(Debug, Default)]
struct Book(Mutex<(Option<Arc<Guard>>, Option<Token>)>);

impl Book {
    fn enter(&self, guard: Guard) -> Arc<Guard> {
        let mut book = self.0.lock();
        let (former, last) = &*book;
        let former = former.as_ref().is_some_and(|former| former.is_held());
        assert!(!(former && guard.is_held()), "two holders");
        assert!(
            Some(guard.token()) > *last,
            "{} after {last:?}",
            guard.token()
        );
        let guard = Arc::new(guard);
        *book = (Some(guard.clone()), Some(guard.token()));
        guard
    }

    fn leave(&self, guard: Arc<Guard>) -> Guard {
        let mut book = self.0.lock();
        let is_last = |last: &Arc<Guard>| Arc::ptr_eq(last, &guard);
        if book.0.as_ref().is_some_and(is_last) {
            book.0 = None;
        }
        Arc::into_inner(guard).expect("the book does not have it any more")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: many faults"]
async fn with_servers_killed_and_stopped_there_is_one_holder_and_tokens_rise() {
    let mut servers = Servers::spawn(3).await;
    let book = Arc::new(Book::default());
    let over = Arc::new(AtomicBool::new(false));
    let grants = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let observer = with_leases(&servers, SHORT).await;
    for number in 0..4_u32 {
        let client = with_leases(&servers, SHORT).await;
        let (book, over, grants) = (book.clone(), over.clone(), grants.clone());
        tasks.spawn(async move {
            while !over.load(Relaxed) {
                let wait = SECOND * (1 + number);
                let Ok(guard) = acquire(&client, "key", wait).await else {
                    continue;
                };
                let guard = book.enter(guard);
                grants.fetch_add(1, Relaxed);
                tokio::select! {
                    () = sleep(Duration::from_millis(40 * u64::from(number))) => {}
                    () = guard.lost() => {}
                }
                book.leave(guard).release().await;
            }
            // Once all servers are there, everybody can have it.
            let guard = acquire(&client, "key", DEADLINE).await.unwrap();
            book.leave(book.enter(guard)).release().await;
        });
    }
    for round in 0..6 {
        let index = round % 3;
        let before = grants.load(Relaxed);
        match round < 3 {
            true => servers.servers[index].kill(),
            false => servers.servers[index].stop(),
        }
        sleep(2 * SHORT).await;
        eventually("locks are granted", async || {
            grants.load(Relaxed) >= before + 5
        })
        .await;
        match round < 3 {
            true => servers.servers[index].restart().await.unwrap(),
            false => servers.servers[index].cont(),
        }
        // Only a minority is away or in its recovery period at any time.
        all_grant(&observer).await;
    }
    over.store(true, Relaxed);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Whether every replica has a record, and the guard says so.
async fn is_everywhere(client: &Client, key: &str, guard: &Guard) -> bool {
    let lock = client.lock(key).namespace("ledger");
    let replicas = lock.inspect_replicas().await.unwrap();
    let has_it = |replica: &ReplicaInspection| {
        let found = replica.found.as_ref();
        found.is_ok_and(|found| found.holder.is_some())
    };
    assert_eq!(replicas.len(), 3);
    replicas.iter().all(has_it) && guard.replicas() == LiveReplicas { live: 3, all: 3 }
}

#[tokio::test]
async fn a_clock_that_jumps_at_one_server_costs_no_lock_and_makes_no_second_holder() {
    jumps_at(0..1).await;
}

#[tokio::test]
#[ignore = "long: every jump costs a recovery period"]
async fn a_clock_that_jumps_at_any_server_costs_no_lock_and_makes_no_second_holder() {
    jumps_at(0..3).await;
}

/// The clocks of these servers jump, one after the other.
async fn jumps_at(jump: Range<usize>) {
    const LEASE: Duration = Duration::from_secs(4);
    let clocks: [WallClock; 3] = Default::default();
    let next = AtomicUsize::new(0);
    let own_clock = |builder| clocks[next.fetch_add(1, Relaxed)].set_up(builder);
    let servers = Servers::spawn_with(3, own_clock).await;
    let (one, other) = (
        with_leases(&servers, LEASE).await,
        with_leases(&servers, LEASE).await,
    );
    let guard = acquire(&one, "key", DEADLINE).await.unwrap();
    for clock in &clocks[jump] {
        for ahead_ms in [700, 3_000, 3_600_000, 0] {
            clock.set_millis(ahead_ms);
            let refused = acquire(&other, "key", SECOND / 2).await.unwrap_err();
            assert!(
                matches!(refused, AcquireError::TimedOut { .. }),
                "{refused:?}"
            );
            assert!(guard.is_held());
            eventually("its record is back everywhere", async || {
                is_everywhere(&other, "key", &guard).await
            })
            .await;
            assert!(guard.is_held());
        }
        // The first renewal learns of the last jump, and the next one ends the danger: with a jump of the next clock before
        // that, two servers of three would fail.
        is_renewed(&guard).await;
        is_renewed(&guard).await;
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn replicas_are_fixed_at_the_founding() {
    let servers = Servers::spawn(3).await;
    let first = client(&servers).await;
    assert_eq!(first.topology().namespaces.to_string(), "ledger=3");
    let other = servers.builder().replicas("ledger", 5).build().await;
    let BuildError::Replicas { declared, .. } = other.unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(declared.get(), 3);
    let even = servers.builder().replicas("ledger", 2).build().await;
    let told = even.unwrap_err().to_string();
    assert!(told.contains("ledger") && told.contains('2'), "{told}");
    let few = Client::builder().embedded(2).replicas("ledger", 3).build();
    let told = few.await.unwrap_err().to_string();
    assert!(told.contains('2') && told.contains('3'), "{told}");
}

/// How many acquisitions have needed a second round trip.
fn second_rounds(client: &Client) -> u64 {
    let shards = client.metrics().read().unwrap().shards;
    shards
        .iter()
        .map(|shard| shard.metrics.second_rounds())
        .sum()
}

/// 64 tasks with a key each, again and again. Returns the share of acquisitions that needed a second round trip.
async fn share_of_second_rounds(client: &Client) -> f64 {
    const TASKS: usize = 64;
    const PAIRS: usize = 50;
    let before = second_rounds(client);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let lock = client.lock(format!("key/{task}")).namespace("ledger");
        tasks.spawn(async move {
            for _ in 0..PAIRS {
                lock.acquire().await.unwrap().release().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    (second_rounds(client) - before) as f64 / (TASKS * PAIRS) as f64
}

/// The shards begin with tokens of different epochs, and each counts on its own. If all answer, the middle token is the
/// lock's. Without one, the two others have to agree.
#[tokio::test]
async fn nearly_all_locks_of_a_process_take_one_round_trip() {
    let mut servers = Servers::spawn(3).await;
    let client = client(&servers).await;
    for alive in [3, 2] {
        // A busy machine delays answers.
        eventually(&format!("{alive} servers: few second rounds"), async || {
            share_of_second_rounds(&client).await < 0.2
        })
        .await;
        servers.servers[0].kill();
    }
}
