//! The waiters for the one contended lock, as its server sees them.

use std::time::Duration;

use ringfence_client::{Client, Guard, Nonce};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{ask, eventually};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::DEADLINE;

pub(crate) const KEY: &str = "key";

/// A waiter for the lock, in its own task; gives up when dropped.
pub(crate) struct Waiter(JoinSet<Guard>);

impl Waiter {
    /// Begins to wait.
    pub(crate) fn start(client: &Client, lease: Duration) -> Self {
        let (client, mut task) = (client.clone(), JoinSet::new());
        task.spawn(async move { client.lock(KEY).lease(lease).acquire().await.unwrap() });
        Self(task)
    }

    /// Begins to wait, in a process of which nobody waits yet. Returns when its place in the queue is known, with its
    /// acquisition.
    pub(crate) async fn queued(client: &Client, lease: Duration) -> (Self, Nonce) {
        let before = queue(client).await;
        let waiter = Self::start(client, lease);
        eventually("a place in the queue", async || {
            queue(client).await.len() > before.len()
        })
        .await;
        (waiter, *queue(client).await.last().unwrap())
    }

    /// Its turn.
    pub(crate) async fn turn(&mut self) -> Guard {
        let turn = timeout(DEADLINE, self.0.join_next()).await;
        turn.expect("its turn").unwrap().unwrap()
    }

    /// Whether it waits on, for `length`.
    pub(crate) async fn waits_for(&mut self, length: Duration) -> bool {
        timeout(length, self.0.join_next()).await.is_err()
    }
}

/// The waiters in the queue, in order.
pub(crate) async fn queue(client: &Client) -> Vec<Nonce> {
    let found = client.lock(KEY).inspect().await.unwrap();
    found.waiters.iter().map(|waiter| waiter.nonce).collect()
}

/// The nonce of the record, and how long it still lasts.
pub(crate) async fn recorded(client: &Client) -> Option<(Nonce, Duration)> {
    let found = client.lock(KEY).inspect().await.unwrap().holder;
    found.map(|holder| (holder.nonce, holder.remaining))
}

/// What `server` has of any lock: the names of records, queues and tickets.
pub(crate) async fn traces(server: &RedisServer) -> Vec<String> {
    ask(server, &["KEYS", "ringfence:*{*"]).await
}

/// Has `server` keep no more than so many [`traces`]. It is asked a number of times, which on a quiet machine takes less
/// than a place in a queue, or what was granted to it, would last.
pub(crate) async fn leaves_only(server: &RedisServer, allowed: usize) {
    const LOOKS: usize = 500;
    let mut left = traces(server).await;
    for _ in 0..LOOKS {
        if left.len() <= allowed {
            return;
        }
        sleep(Duration::from_millis(1)).await;
        left = traces(server).await;
    }
    panic!("left: {left:?}");
}
