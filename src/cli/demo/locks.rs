//! The lock of each account, and the shard it is at.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{AcquireError, Client, Guard, Lock, Namespace, ShardId};

use crate::cli::ring::fair_share;

/// Where the demo's locks are, beside those of others.
const NAMESPACE: &str = "demo";

/// Renewed every second. A lock that always somebody waits for goes from worker to worker and is hardly
/// ever given back: where its slot moves, it follows with a renewal.
const LEASE: Duration = Duration::from_secs(3);

/// The locks of a run, one an account.
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

    /// Takes the lock of `account`, waiting as long as it takes.
    pub(super) async fn acquire(
        &self,
        client: &Client,
        account: u32,
    ) -> Result<Guard, AcquireError> {
        lock(client, &self.key(account)).acquire().await
    }

    /// Takes a lock of no account, the one called `number`, if it is free.
    pub(super) async fn try_hold(
        &self,
        client: &Client,
        number: u32,
    ) -> Result<Guard, AcquireError> {
        let key = format!("{}/held/{number}", self.run);
        lock(client, &key).try_acquire().await
    }

    /// Which shard the lock of `account` is at now.
    pub(super) fn shard_of(&self, client: &Client, account: u32) -> ShardId {
        let at = client.shard_of(&self.namespace, self.key(account));
        at.expect("the key is a short one")
    }

    fn key(&self, account: u32) -> String {
        format!("{}/account/{account}", self.run)
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
