//! Shards, and the topology, on etcd ≥ 3.4. The only module that says `tonic::`.
//!
//! A cluster of etcd is a [`Store`] of the documents of a shard, or of a topology's home alone: of its record, its fence and
//! its pointer. It survives the loss of a minority of the nodes, and notices nothing of it.
//!
//! | file | content |
//! |---|---|
//! | `wire.rs` | requests to the nodes, of which one is asked until it fails |
//! | `txn.rs` | transactions: conditions, operations, what they found |
//! | `session.rs`, `commit.rs` | reads and commits |
//! | `inbox.rs` | messages: the changes of a key |

mod address;
mod commit;
mod inbox;
mod session;
mod txn;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

pub use address::{EtcdAddress, EtcdAddressError};

use self::{inbox::EtcdInbox, session::EtcdSession, wire::Wire};
use crate::{
    clock::{BootClock, Clock},
    ids::{ClientId, Life},
    name::KeyPrefix,
    random::Random,
    shard::{
        ConnectionId, ShardError,
        docs::{DocsShard, Inbox, Session, Store, quorum::witness::Witness},
    },
};

/// The messages and clients generated from `proto/etcd.proto`.
#[expect(unreachable_pub, reason = "generated")]
mod api {
    tonic::include_proto!("etcdserverpb");
}

/// How a cluster is reached.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Its nodes.
    pub address: EtcdAddress,
    /// What its keys begin with, before a slash.
    pub prefix: KeyPrefix,
    /// How long one node has to answer, or to take a connection. After that another node is asked.
    pub response_timeout: Duration,
    /// How long nodes are asked before a request is given up, if the one before it was answered. It outlasts two elections
    /// of a leader, each of which takes 1 s to 2 s with etcd's default settings: in the first one the votes may be split.
    pub patience: Duration,
    /// The clock of this process, by which leases of locks are measured.
    pub clock: Arc<dyn Clock>,
}

impl EtcdOptions {
    /// The cluster at `address`, with default times (1 s and 5 s) and prefix (`ringfence`).
    pub fn new(address: EtcdAddress) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            response_timeout: Duration::from_secs(1),
            patience: Duration::from_secs(5),
            clock: Arc::new(BootClock),
        }
    }
}

/// A shard on the cluster that `options` name. Connects to nothing yet.
pub fn etcd_shard(options: EtcdOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(etcd_store(options, random.clone()), random)
}

/// The store of such a shard.
pub fn etcd_store(options: EtcdOptions, random: Arc<Random>) -> Arc<dyn Store> {
    EtcdStore::new(options, random, true)
}

/// The documents of a home on the cluster that `options` name: its clock is not put forward. Connects to nothing yet.
pub(crate) fn etcd_home(options: EtcdOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(EtcdStore::new(options, random.clone(), false), random)
}

/// Whether the cluster can keep locks: its version, its space, and the user's login.
///
/// # Errors
///
/// It does not answer, or [`ShardError::Unusable`] says why it cannot.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
pub(crate) async fn check(options: &EtcdOptions) -> Result<(), ShardError> {
    let random = Arc::new(Random::from_os());
    Wire::new(options.clone(), random).check().await
}

/// Shared by the sessions of a store.
#[derive(Debug)]
struct Shared {
    wire: Wire,
    witness: Witness<i64>,
}

/// A store on one cluster.
#[derive(Debug)]
struct EtcdStore(Arc<Shared>);

impl EtcdStore {
    fn new(options: EtcdOptions, random: Arc<Random>, keeps_locks: bool) -> Arc<Self> {
        let witness = Witness::new(options.clock.clone(), keeps_locks);
        let wire = Wire::new(options, random);
        Arc::new(Self(Arc::new(Shared { wire, witness })))
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let session = EtcdSession::open(self.0.clone(), former).await?;
        Ok(Box::new(session))
    }

    async fn open_rare(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        self.open(former).await
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        let mut inbox = EtcdInbox::open(&self.0.wire, client).await;
        if matches!(inbox, Err(ShardError::Unarmed)) {
            // A session begins the life.
            EtcdSession::open(self.0.clone(), None).await?;
            inbox = EtcdInbox::open(&self.0.wire, client).await;
        }
        Ok(Box::new(inbox?))
    }
}
