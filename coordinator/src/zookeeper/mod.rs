//! Shards, and the topology, on ZooKeeper ≥ 3.6. The only module that says `zookeeper_client::`.
//!
//! An ensemble of ZooKeeper is a [`Store`] of the documents of a shard, or of a topology's home alone. It survives the loss
//! of a minority of the servers.
//!
//! | file | content |
//! |---|---|
//! | `wire.rs` | requests, on one session of ZooKeeper that all sessions of the store share |
//! | `nodes.rs` | the znodes, and operations on them |
//! | `life.rs`, `session.rs`, `page.rs` | sessions, and reads |
//! | `commit.rs`, `sweep.rs` | commits |
//! | `inbox.rs` | messages: changes of ephemeral znodes |
//!
//! **Reads.** A server of ZooKeeper answers reads by what it knows, which may be old; so may the leader of `sync`. So each
//! read follows a write in the same session of ZooKeeper, which the server answers only after it has applied it: the read
//! has every commit that was answered before.
//!
//! **Versions.** A commit compares the versions of znodes, which begin anew at 0 when a znode is made again. So a commit
//! depends on a znode, `swept`, too, which each deletion of documents changes.

mod address;
mod commit;
mod inbox;
mod life;
mod nodes;
mod page;
mod session;
mod sweep;
mod wire;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;

pub use address::{ZookeeperAddress, ZookeeperAddressError};

use self::{
    inbox::ZookeeperInbox,
    nodes::{Paths, Stamp},
    session::ZookeeperSession,
    wire::Wire,
};
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

/// How an ensemble is reached.
#[derive(Clone, Debug)]
pub struct ZookeeperOptions {
    /// Its servers.
    pub address: ZookeeperAddress,
    /// The znode that its znodes are under, beneath the path of the address.
    pub prefix: KeyPrefix,
    /// How long one server has to take a connection, or to answer. After that another server is asked.
    pub response_timeout: Duration,
    /// How long servers are asked before a request is given up, if the one before it was answered.
    pub patience: Duration,
    /// The clock of this process, by which leases of locks are measured.
    pub clock: Arc<dyn Clock>,
}

impl ZookeeperOptions {
    /// The ensemble at `address`, with default times (1 s and 3 s) and prefix (`ringfence`).
    pub fn new(address: ZookeeperAddress) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            response_timeout: Duration::from_secs(1),
            patience: Duration::from_secs(3),
            clock: Arc::new(BootClock),
        }
    }
}

/// A shard on the ensemble that `options` name. Connects to nothing yet.
pub fn zookeeper_shard(options: ZookeeperOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(zookeeper_store(options, random.clone()), random)
}

/// The store of such a shard.
pub fn zookeeper_store(options: ZookeeperOptions, random: Arc<Random>) -> Arc<dyn Store> {
    ZookeeperStore::new(options, random, true)
}

/// The documents of a home on the ensemble that `options` name: its clock is not put forward. Connects to nothing yet.
pub(crate) fn zookeeper_home(options: ZookeeperOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(ZookeeperStore::new(options, random.clone(), false), random)
}

/// Whether the ensemble can keep locks: its version, and the user's rights.
///
/// # Errors
///
/// It does not answer, or [`ShardError::Unusable`] says why it cannot.
///
/// # Cancel safety
///
/// Dropping the future may leave znodes that hold nothing.
pub(crate) async fn check(options: &ZookeeperOptions) -> Result<(), ShardError> {
    let random = Arc::new(Random::from_os());
    let store = ZookeeperStore::new(options.clone(), random, false);
    let mut session = store.open(None).await?;
    session.read(&[], None).await.map(drop)
}

/// Shared by the sessions of a store.
#[derive(Debug)]
struct Shared {
    wire: Wire,
    paths: Paths,
    witness: Witness<Stamp>,
    /// Of messages that were sent.
    messages: AtomicU64,
}

impl Shared {
    /// The znode for the next message to `client`.
    fn next_message(&self, client: ClientId) -> String {
        self.paths
            .message(client, self.messages.fetch_add(1, Relaxed))
    }
}

/// A store on one ensemble.
#[derive(Debug)]
struct ZookeeperStore(Arc<Shared>);

impl ZookeeperStore {
    fn new(options: ZookeeperOptions, random: Arc<Random>, keeps_locks: bool) -> Arc<Self> {
        Arc::new(Self(Arc::new(Shared {
            paths: Paths::new(&options),
            witness: Witness::new(options.clock.clone(), keeps_locks),
            messages: AtomicU64::new(random.below(u64::from(u32::MAX))),
            wire: Wire::new(options, random),
        })))
    }
}

#[async_trait]
impl Store for ZookeeperStore {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let session = ZookeeperSession::open(self.0.clone(), former).await?;
        Ok(Box::new(session))
    }

    async fn open_rare(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        self.open(former).await
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        let mut inbox = ZookeeperInbox::open(&self.0, client).await;
        if matches!(inbox, Err(ShardError::Unarmed)) {
            // A session begins the life.
            ZookeeperSession::open(self.0.clone(), None).await?;
            inbox = ZookeeperInbox::open(&self.0, client).await;
        }
        Ok(Box::new(inbox?))
    }
}
