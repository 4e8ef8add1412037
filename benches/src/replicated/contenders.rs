//! Ringfence with replicas and without, and the rslock crate.

use std::hint::black_box;

use ringfence_client::{Client, ReleaseAnswer};
use rslock::LockManager;

use crate::{Failure, LEASE};

/// As many clients take part at most.
pub(crate) const CLIENTS: usize = 4;

/// The namespace whose locks have replicas.
pub(crate) const REPLICATED: &str = "ledger";

/// A way to acquire and release locks.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    clients: Vec<Kind>,
}

/// One client, in one process.
#[derive(Clone)]
enum Kind {
    Ringfence {
        client: Client,
        namespace: &'static str,
    },
    Rslock(LockManager),
}

impl Contender {
    /// Each of them, on the servers at `urls`: new, and nobody else's.
    pub(crate) async fn all(urls: &[String], replicas: u32) -> Result<Vec<Self>, Failure> {
        let ringfence = async |namespace| {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                let builder = Client::builder().redis(urls).replicas(REPLICATED, replicas);
                let client = builder.servers_are_new(true).build().await?;
                clients.push(Kind::Ringfence { client, namespace });
            }
            Ok::<_, Failure>(clients)
        };
        let manager = || Kind::Rslock(LockManager::new(urls.to_vec()));
        Ok(vec![
            Self {
                name: "ringfence",
                what: "the client, in a namespace with as many replicas as servers",
                clients: ringfence(REPLICATED).await?,
            },
            Self {
                name: "ringfence-again",
                what: "the same",
                clients: ringfence(REPLICATED).await?,
            },
            Self {
                name: "one-replica",
                what: "the client, in a namespace without replicas: each key at one of the servers",
                clients: ringfence("default").await?,
            },
            Self {
                name: "rslock",
                what: "the rslock crate: manager.acquire_no_guard(key), manager.unlock(lock)",
                clients: (0..CLIENTS).map(|_| manager()).collect(),
            },
        ])
    }

    /// A task at one of the first `clients` clients, for `key`.
    pub(crate) fn task(&self, number: usize, clients: usize, key: &str) -> Task {
        Task {
            kind: self.clients[number % clients].clone(),
            key: format!("{}:{key}", self.name),
        }
    }

    /// How many acquisitions needed a second round trip. None if that is not counted.
    pub(crate) fn second_rounds(&self) -> Option<u64> {
        let mut sum = 0;
        for client in &self.clients {
            let Kind::Ringfence { client, .. } = client else {
                return None;
            };
            let shards = client.metrics().read()?.shards;
            let of_shards = shards.iter().map(|shard| shard.metrics.second_rounds());
            sum += of_shards.sum::<u64>();
        }
        Some(sum)
    }
}

/// Acquires and releases one key, again and again.
pub(crate) struct Task {
    kind: Kind,
    key: String,
}

impl crate::Task for Task {
    async fn pair(&self) -> Result<(), Failure> {
        match &self.kind {
            Kind::Ringfence { client, namespace } => {
                let lock = client.lock(&self.key).namespace(namespace).lease(LEASE);
                let guard = lock.acquire().await?;
                black_box(guard.token());
                match guard.release().await {
                    ReleaseAnswer::Held => Ok(()),
                    other => Err(format!("{}: released, and it was {other:?}", self.key).into()),
                }
            }
            Kind::Rslock(manager) => {
                let lock = manager.acquire_no_guard(self.key.as_bytes(), LEASE).await?;
                // Answers nothing: whether it was still held cannot be checked.
                manager.unlock(&lock).await;
                Ok(())
            }
        }
    }
}
