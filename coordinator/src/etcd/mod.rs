//! The topology on etcd ≥ 3.4. The only module that says `tonic::`.
//!
//! A cluster of etcd is a [`Store`] of the documents of a topology's home: of its record, its fence and its pointer. The
//! home survives the loss of a minority of the nodes, and notices nothing of it. It keeps no locks: those have ends, and
//! a transaction of etcd sees no clock.
//!
//! | file | content |
//! |---|---|
//! | `wire.rs` | requests to the nodes, of which one is asked until it fails |
//! | `session.rs` | reads and commits |
//! | `inbox.rs` | messages: the changes of a key |

mod address;
mod inbox;
mod session;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

pub use address::{EtcdAddress, EtcdAddressError};

use self::{inbox::EtcdInbox, session::EtcdSession, wire::Wire};
use crate::{
    ids::{ClientId, Life},
    name::KeyPrefix,
    random::Random,
    shard::{
        ConnectionId, ShardError,
        docs::{DocsShard, Inbox, Session, Store},
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
    /// How long nodes are asked before a request is given up. It outlasts an election of a leader, which takes 1 s to 2 s
    /// with etcd's default settings.
    pub patience: Duration,
}

impl EtcdOptions {
    /// The cluster at `address`, with default times (1 s and 3 s) and prefix (`ringfence`).
    pub fn new(address: EtcdAddress) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            response_timeout: Duration::from_secs(1),
            patience: Duration::from_secs(3),
        }
    }
}

/// The documents of a home on the cluster that `options` name. Connects to nothing yet.
pub(crate) fn etcd_home(options: EtcdOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(etcd_store(options, random.clone()), random)
}

/// The store of such a home. It refuses what only locks need: ends, tokens, and pages.
pub fn etcd_store(options: EtcdOptions, random: Arc<Random>) -> Arc<dyn Store> {
    let wire = Arc::new(Wire::new(options, random));
    Arc::new(EtcdStore { wire })
}

/// A store on one cluster, for documents without an end.
#[derive(Debug)]
struct EtcdStore {
    wire: Arc<Wire>,
}

#[async_trait]
impl Store for EtcdStore {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let session = EtcdSession::open(self.wire.clone(), former).await?;
        Ok(Box::new(session))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        Ok(Box::new(EtcdInbox::open(&self.wire, client).await?))
    }
}

/// Why locks are refused.
fn keeps_no_locks() -> ShardError {
    ShardError::Unusable {
        reason: "etcd keeps the topology, and no locks".into(),
    }
}
