//! The lock of each account, and the shard that has it.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{AcquireError, Client, Guard, Lock, Namespace, ShardId};

/// The namespace of the demo's locks.
const NAMESPACE: &str = "demo";

/// The lease. It is renewed every second. A lock that always has waiters goes from worker to worker and is hardly ever
/// released at the shard; if its slot moves, it follows with a renewal.
const LEASE: Duration = Duration::from_secs(3);

/// The pause between two renewals of a held lock.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(LEASE.as_secs() / 3);

/// A lock of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// The lock of an account.
    Account(u32),
    /// The lock of a worker, which no other worker acquires.
    Worker(u32),
    /// A lock that is held throughout a resize.
    Held(u32),
}

/// The locks of a run.
#[derive(Debug)]
pub(super) struct Locks {
    run: String,
    namespace: Namespace,
}

impl Locks {
    /// Locks with names for `run`.
    pub(super) fn new(run: &str) -> Result<Self, AcquireError> {
        Ok(Self {
            run: run.to_owned(),
            namespace: Namespace::new(NAMESPACE)?,
        })
    }

    /// Acquires a lock. Waits indefinitely.
    pub(super) async fn acquire(&self, client: &Client, key: Key) -> Result<Guard, AcquireError> {
        lock(client, &self.name(key)).acquire().await
    }

    /// Acquires a lock if it is free.
    pub(super) async fn try_acquire(
        &self,
        client: &Client,
        key: Key,
    ) -> Result<Guard, AcquireError> {
        lock(client, &self.name(key)).try_acquire().await
    }

    /// The shard that has a lock now.
    pub(super) fn shard_of(&self, client: &Client, key: Key) -> ShardId {
        let at = client.shard_of(&self.namespace, self.name(key));
        at.expect("the name is a short one")
    }

    fn name(&self, key: Key) -> String {
        let run = &self.run;
        match key {
            Key::Account(number) => format!("{run}/account/{number}"),
            Key::Worker(number) => format!("{run}/worker/{number}"),
            Key::Held(number) => format!("{run}/held/{number}"),
        }
    }
}

fn lock(client: &Client, key: &str) -> Lock {
    client.lock(key).namespace(NAMESPACE).lease(LEASE)
}

/// The part of the locks that each shard should have, of 1.
pub(super) fn fair_shares(client: &Client) -> BTreeMap<ShardId, f64> {
    let topology = client.topology();
    let shards = topology.table.shards().iter();
    shards
        .map(|id| (id.clone(), topology.fair_share(id)))
        .collect()
}
