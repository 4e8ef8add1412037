//! The lock of each account, and the shard it is at.

use ringfence_client::{AcquireError, Client, Guard, Namespace, ShardId};

use crate::cli::ring::fair_share;

/// Where the demo's locks are, beside those of others.
const NAMESPACE: &str = "demo";

/// The locks of a run, one an account.
#[derive(Debug)]
pub(super) struct Locks {
    run: String,
    shards: Vec<Shard>,
    /// An index into the shards.
    shard_of: Vec<usize>,
}

/// A shard.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) id: ShardId,
    /// The part of the locks it is to have, of 1.
    pub(super) fair_share: f64,
}

impl Locks {
    /// The locks of so many accounts, named for `run`.
    pub(super) fn new(client: &Client, run: &str, accounts: u32) -> Result<Self, AcquireError> {
        let topology = client.topology();
        let shard = |id: &ShardId| Shard {
            id: id.clone(),
            fair_share: fair_share(&topology, id),
        };
        let shards: Vec<Shard> = topology.table.shards().iter().map(shard).collect();
        let namespace = Namespace::new(NAMESPACE)?;
        let shard_of = (0..accounts).map(|account| {
            let at = client.shard_of(&namespace, key(run, account))?;
            Ok(shards
                .iter()
                .position(|shard| shard.id == at)
                .unwrap_or_default())
        });
        let shard_of = shard_of.collect::<Result<_, AcquireError>>()?;
        Ok(Self {
            run: run.to_owned(),
            shards,
            shard_of,
        })
    }

    /// Takes the lock of `account`, waiting as long as it takes.
    pub(super) async fn acquire(
        &self,
        client: &Client,
        account: u32,
    ) -> Result<Guard, AcquireError> {
        client
            .lock(&key(&self.run, account))
            .namespace(NAMESPACE)
            .acquire()
            .await
    }

    /// The shards, as they were at the beginning.
    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Which of the shards the lock of `account` is at.
    pub(super) fn shard_of(&self, account: u32) -> usize {
        self.shard_of[account as usize]
    }
}

fn key(run: &str, account: u32) -> String {
    format!("{run}/account/{account}")
}
