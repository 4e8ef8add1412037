//! Processes share a segmented lock, and its number changes, or the ring.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering::SeqCst},
};

use ringfence_client::{Client, Namespace, NewShard, Reshape, SegmentedLock};
use ringfence_test_support::Servers;
use tokio::task::JoinSet;

use super::{DEADLINE, comeback::RECOVERY};

const CLIENTS: usize = 4;
const TASKS: usize = 8;
const ROUNDS: usize = 15;

/// The holders inside: one per holder of one sub-lock, a thousand for a holder of all.
#[derive(Default)]
struct Inside(AtomicI64);

impl Inside {
    async fn one(&self, lock: &SegmentedLock) {
        let guard = lock.any().acquire().await.unwrap();
        assert!(self.0.fetch_add(1, SeqCst) < 1000, "one beside all");
        tokio::task::yield_now().await;
        assert!(guard.is_held());
        self.0.fetch_sub(1, SeqCst);
        guard.release().await;
    }

    async fn all(&self, lock: &SegmentedLock) -> usize {
        let all = lock.all().acquire().await.unwrap();
        assert_eq!(self.0.fetch_add(1000, SeqCst), 0, "somebody beside all");
        tokio::task::yield_now().await;
        assert!(all.is_held());
        self.0.fetch_sub(1000, SeqCst);
        all.release().await.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holder_of_all_is_alone_while_processes_come_and_the_number_changes() {
    let servers = Servers::spawn(3).await;
    let inside = Arc::new(Inside::default());
    let mut tasks = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = servers.client().await;
        let lock = client.segmented_lock("stock/7").create(4).await.unwrap();
        for task in 0..TASKS {
            let (lock, inside) = (lock.clone(), inside.clone());
            let client = client.clone();
            tasks.spawn(async move {
                for round in 0..ROUNDS {
                    match (task + round) % TASKS {
                        0 => assert!(inside.all(&lock).await >= 4),
                        _ => inside.one(&lock).await,
                    }
                }
                drop(client);
            });
        }
    }
    let client = servers.client().await;
    let lock = client.segmented_lock("stock/7").open().unwrap();
    for segments in [6, 2, 9, 3, 12] {
        lock.resize(segments).wait(DEADLINE).run().await.unwrap();
    }
    tasks.join_all().await;

    let split = lock.split().await.unwrap();
    assert_eq!((split.used(), split.made()), (12, 12));
    assert_eq!(inside.all(&lock).await, 12);
    let mut counts = std::collections::BTreeMap::<_, u32>::new();
    for segment in 0..12 {
        let key = split.key_of("stock/7", segment).unwrap();
        let shard = client.shard_of(&Namespace::default(), key).unwrap();
        *counts.entry(shard).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count <= 5), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: shards come and go for minutes"]
async fn the_holder_of_all_is_alone_while_shards_come_and_go_and_one_is_killed() {
    let mut servers = Servers::spawn_with(4, |server| server.set("appendonly", "yes")).await;
    let urls = servers.urls();
    let connect = async || {
        let builder = Client::builder().redis(&urls[..3]).max_lease(RECOVERY);
        builder.servers_are_new(true).build().await.unwrap()
    };
    let (inside, stop) = (
        Arc::new(Inside::default()),
        Arc::new(AtomicBool::new(false)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = connect().await;
        let lock = client.segmented_lock("stock/7").create(6).await.unwrap();
        for task in 0..TASKS {
            let (lock, inside, stop) = (lock.clone(), inside.clone(), stop.clone());
            let client = client.clone();
            tasks.spawn(async move {
                let mut rounds = 0;
                while rounds == 0 || !stop.load(SeqCst) {
                    match (task + rounds) % TASKS {
                        0 => assert_eq!(inside.all(&lock).await, 6),
                        _ => inside.one(&lock).await,
                    }
                    rounds += 1;
                }
                drop(client);
            });
        }
    }
    let client = connect().await;
    let ring = client.ring();
    let grow = Reshape::new().add_shard(NewShard::redis(&urls[3]));
    ring.reshape(grow).await.unwrap().run().await.unwrap();
    servers.servers[1].kill();
    servers.servers[1].restart().await.unwrap();
    // Then wherever the lock's record was, it is elsewhere.
    let founders = ["a", "b", "c"].map(|id| id.parse().unwrap());
    let shrink = founders
        .into_iter()
        .fold(Reshape::new(), Reshape::remove_shard);
    ring.reshape(shrink).await.unwrap().run().await.unwrap();
    stop.store(true, SeqCst);
    tasks.join_all().await;

    let lock = client.segmented_lock("stock/7").open().unwrap();
    assert_eq!(inside.all(&lock).await, 6);
}
