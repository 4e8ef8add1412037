//! The lock of each account, and the shard it is at.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{AcquireError, Client, Guard, Lock, Namespace, ShardId};

use crate::ring::fair_share;

/// Where the demo's locks are, beside those of others.
const NAMESPACE: &str = "demo";

/// Renewed every second. A lock that always somebody waits for goes from worker to worker and is hardly
/// ever given back: where its slot moves, it follows with a renewal.
const LEASE: Duration = Duration::from_secs(3);

/// How often a lock that is held is renewed.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(LEASE.as_secs() / 3);

/// Which lock of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// That of an account.
    Account(u32),
    /// That of a worker, which no other worker takes.
    Worker(u32),
    /// One that is held throughout a resize.
    Held(u32),
}

/// The locks of a run.
#[derive(Debug)]
pub(super) struct Locks {
    run: String,
    namespace: Namespace,
}

impl Locks {
    /// Locks named for `run`.
    pub(super) fn new(run: &str) -> Result<Self, AcquireError> {
        Ok(Self {
            run: run.to_owned(),
            namespace: Namespace::new(NAMESPACE)?,
        })
    }

    /// Takes a lock, waiting as long as it takes.
    pub(super) async fn acquire(&self, client: &Client, key: Key) -> Result<Guard, AcquireError> {
        lock(client, &self.name(key)).acquire().await
    }

    /// Takes a lock if it is free.
    pub(super) async fn try_acquire(
        &self,
        client: &Client,
        key: Key,
    ) -> Result<Guard, AcquireError> {
        lock(client, &self.name(key)).try_acquire().await
    }

    /// Which shard a lock is at now.
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

fn lock<'a>(client: &'a Client, key: &'a str) -> Lock<'a> {
    client.lock(key).namespace(NAMESPACE).lease(LEASE)
}

/// The part of the locks that each shard is to have, of 1.
pub(super) fn fair_shares(client: &Client) -> BTreeMap<ShardId, f64> {
    let topology = client.topology();
    let shards = topology.table.shards().iter();
    shards
        .map(|id| (id.clone(), fair_share(&topology, id)))
        .collect()
}
