//! A watch hears of a newer record from the home, and sees in time what it does not hear.

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::topology::{
    Swap, Topology, TopologyError, TopologyStore,
    server::{Founding, ServerTopology},
};
use ringfence_test_support::eventually;
use tokio::{task::JoinSet, time::timeout};

use super::servers::{RECORD, Servers, founding, join_with, successor};

/// No test lasts until a watch looks by itself.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// The limit of every wait in these tests.
const SOON: Duration = Duration::from_secs(120);

type Watching = JoinSet<Result<Arc<Topology>, TopologyError>>;

impl Servers {
    /// A process that looks by itself after `watch_every`.
    async fn watcher(&self, watch_every: Duration) -> Arc<ServerTopology> {
        let founding = Founding {
            watch_every,
            ..founding()
        };
        join_with(self.seeds(), founding).await.unwrap().store
    }

    /// The number of listeners to the server at `place`.
    async fn listeners(&self, place: usize) -> u64 {
        let mut asked = redis::cmd("PUBSUB");
        asked.arg("NUMSUB").arg(RECORD);
        let mut raw = self.raw(place).await;
        let (_, listeners): (String, u64) = asked.query_async(&mut raw).await.unwrap();
        listeners
    }

    /// Waits until `count` processes listen to the server at `place`.
    async fn heard_by(&self, place: usize, count: u64) {
        eventually("it is listened to", async || {
            self.listeners(place).await == count
        })
        .await;
    }

    /// Ends every connection on which the server at `place` is listened to.
    async fn hang_up(&self, place: usize) {
        let mut raw = self.raw(place).await;
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg("pubsub");
        let killed: u64 = kill.query_async(&mut raw).await.unwrap();
        assert!(killed > 0);
    }
}

fn watch(store: &Arc<ServerTopology>, known: &Topology) -> Watching {
    let (store, known) = (store.clone(), known.version());
    let mut watching = JoinSet::new();
    watching.spawn(async move { store.watch(known).await });
    watching
}

async fn woken(mut watching: Watching) -> Topology {
    let woken = timeout(SOON, watching.join_next()).await.expect("it wakes");
    Topology::clone(&*woken.unwrap().unwrap().unwrap())
}

async fn swap(store: &ServerTopology, before: &Topology) -> Topology {
    let next = successor(before);
    let swapped = store.swap(before.version(), &next).await;
    assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
    next
}

#[tokio::test]
async fn a_swap_is_heard_long_before_it_would_be_seen() {
    let (servers, joined, home) = Servers::spawn(2).await.founded().await;
    let watcher = servers.watcher(FAR).await;
    let mut known = Topology::clone(&joined.topology);
    for _ in 0..3 {
        let watching = watch(&watcher, &known);
        servers.heard_by(home, 1).await;
        known = swap(&joined.store, &known).await;
        assert_eq!(woken(watching).await, known);
    }
    assert_eq!(servers.listeners(home).await, 1);
}

#[tokio::test]
async fn two_that_watch_by_one_connection_wake_both() {
    let (servers, joined, home) = Servers::spawn(1).await.founded().await;
    let watcher = servers.watcher(FAR).await;
    let watching = [(); 2].map(|()| watch(&watcher, &joined.topology));
    servers.heard_by(home, 1).await;
    let known = swap(&joined.store, &joined.topology).await;
    for watching in watching {
        assert_eq!(woken(watching).await, known);
    }
}

#[tokio::test]
async fn a_recovery_is_heard_too() {
    let (servers, joined, home) = Servers::spawn(1).await.founded().await;
    let watcher = servers.watcher(FAR).await;
    let watching = watch(&watcher, &joined.topology);
    servers.heard_by(home, 1).await;
    let mut fence = joined.topology.incarnation;
    fence.number += 1;
    joined.store.outrun(fence);
    let recovered = joined.store.load().await.unwrap();
    assert_eq!(woken(watching).await, *recovered);
}

#[tokio::test]
async fn a_message_that_was_lost_is_made_good() {
    let (servers, joined, home) = Servers::spawn(1).await.founded().await;
    let watcher = servers.watcher(Duration::from_millis(300)).await;
    let watching = watch(&watcher, &joined.topology);
    servers.heard_by(home, 1).await;
    let next = successor(&joined.topology);
    let record = servers.get(home, RECORD).await.unwrap();
    let version = |topology: &Topology| format!(" {} {} ", topology.version, topology.home.life);
    let header = record.lines().next().unwrap();
    let header = header.replace(&version(&joined.topology), &version(&next));
    let silently = format!("{header}\n{}", next.encode());
    servers.set(home, RECORD, &silently).await;
    assert_eq!(woken(watching).await, next);
}

#[tokio::test]
async fn a_connection_that_was_ended_is_opened_again() {
    let (servers, joined, home) = Servers::spawn(1).await.founded().await;
    let watcher = servers.watcher(Duration::from_millis(300)).await;
    let mut known = Topology::clone(&joined.topology);
    for _ in 0..3 {
        let watching = watch(&watcher, &known);
        servers.heard_by(home, 1).await;
        servers.hang_up(home).await;
        servers.heard_by(home, 1).await;
        known = swap(&joined.store, &known).await;
        assert_eq!(woken(watching).await, known);
    }
}

#[tokio::test]
async fn a_server_that_lets_nobody_publish_is_looked_at() {
    let (servers, joined, home) = Servers::spawn(1).await.founded().await;
    let watcher = servers.watcher(Duration::from_millis(300)).await;
    let mut forbid = redis::cmd("ACL");
    forbid.arg(&["SETUSER", "default", "resetchannels"]);
    let mut raw = servers.raw(home).await;
    forbid.exec_async(&mut raw).await.unwrap();
    let watching = watch(&watcher, &joined.topology);
    let known = swap(&joined.store, &joined.topology).await;
    assert_eq!(woken(watching).await, known);
    assert_eq!(servers.listeners(home).await, 0);
}

#[tokio::test]
async fn it_is_the_present_home_that_is_listened_to() {
    let (servers, joined, home) = Servers::spawn(2).await.founded().await;
    let watcher = servers.watcher(Duration::from_millis(300)).await;
    let watching = watch(&watcher, &joined.topology);
    servers.heard_by(home, 1).await;
    drop(watching);
    // Declared dead, and there again: the connection to it never ended.
    servers.0[home].stop();
    let dead = servers.shard(&joined.topology, home);
    let recovered = joined.store.recover(&[dead]).await.unwrap();
    servers.0[home].cont();
    watcher.outrun(recovered.incarnation);
    assert_eq!(watcher.load().await.unwrap(), recovered);

    let watching = watch(&watcher, &recovered);
    servers.heard_by(1 - home, 1).await;
    let known = swap(&joined.store, &recovered).await;
    assert_eq!(woken(watching).await, known);
}
