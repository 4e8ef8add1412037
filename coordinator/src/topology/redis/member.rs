//! One server, from the topology's view.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use ringfence_ring::Slot;

use super::{
    answers::{Claim, Copied, Fenced, Found, Join, Leave, Retired, Site, Swapped, Trace},
    news::Announcements,
    on_docs::OnDocs,
    on_redis::OnRedis,
    stored::Pointer,
};
use crate::{
    ids::{Incarnation, Life},
    random::Random,
    shard::{ServerOptions, ShardError},
    topology::{Topology, TopologyError, Version},
};

/// A server, reached over a separate connection. On Redis each operation is a script; on servers of documents, a
/// commit.
///
/// Every operation may be repeated. An operation without an answer may have taken effect, or may
/// yet, until the next one begins: the next one first ends the former connection.
#[async_trait]
pub(super) trait Member: fmt::Debug + Send + Sync {
    /// Its address, without credentials.
    fn address(&self) -> &str;

    /// The way to reach it.
    fn options(&self) -> ServerOptions;

    /// Whether there is a connection, which may be dead.
    async fn is_connected(&self) -> bool;

    /// The server, as the present connection's handshake found it.
    async fn server(&self) -> Result<Site, TopologyError>;

    /// Everything that it knows of a topology, at one moment.
    async fn trace(&self) -> Result<Trace, TopologyError>;

    /// Begins to found `creating`, if its home is in the life that it names.
    async fn claim(&self, creating: &Topology) -> Result<Claim, TopologyError>;

    /// Makes the server, if it is in `life`, a member of the topology that `pointer` names.
    async fn join(&self, pointer: &Pointer, life: &Life) -> Result<Join, TopologyError>;

    /// Removes the pointer to topology `id`, if the topology was never in use here.
    async fn leave(&self, id: &str) -> Result<Leave, TopologyError>;

    /// Removes the server's data of `topology`, which does not name it any more, if the server is
    /// in `life`.
    async fn retire(&self, topology: &Topology, life: &Life) -> Result<Retired, TopologyError>;

    /// Replaces the record at `expected` by `next`, in the life that `next` names.
    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swapped, TopologyError>;

    /// Removes the record of `id`, if it is still in creation. Returns whether it was there.
    async fn void(&self, id: &str) -> Result<bool, TopologyError>;

    /// Gives the server a copy of `topology`.
    async fn copy(&self, topology: &Topology) -> Result<Copied, TopologyError>;

    /// Raises the fence of the server to `n`, if it is in `life`, and is or was a member of `id`.
    async fn fence(&self, life: &Life, id: &str, n: Incarnation) -> Result<Fenced, TopologyError>;

    /// Puts `next` in force here, in the life that it names, if the fence equals its incarnation.
    /// Returns whether it is in force.
    async fn restore(&self, next: &Topology) -> Result<bool, TopologyError>;

    /// Reads the record, if it is not `known`, and the state of its server.
    async fn read(&self, known: Option<&Topology>) -> Result<(Site, Found), TopologyError>;

    /// One of `slots` that has a counter, or the record of a segmented lock.
    async fn slot_with_counters(&self, slots: &[Slot]) -> Result<Option<Slot>, TopologyError>;

    /// Opens a connection on which the versions of its record are announced.
    async fn announcements(&self) -> Result<Announcements, ShardError>;
}

/// The server that `options` name.
pub(super) fn member(options: ServerOptions, random: &Arc<Random>) -> Arc<dyn Member> {
    match (options.docs(random), options) {
        (Some(docs), options) => Arc::new(OnDocs::new(docs, options)),
        (None, ServerOptions::Redis(options)) => Arc::new(OnRedis::new(options)),
        #[cfg(any(
            feature = "etcd",
            feature = "mysql",
            feature = "postgres",
            feature = "zookeeper"
        ))]
        (None, _) => unreachable!("all others store documents"),
    }
}

impl dyn Member {
    /// Does `operation`, and repeats it once if the connection was dead: a server that restarted
    /// leaves such a connection. Only for operations that may be repeated without notice; a swap is
    /// not one.
    pub(super) async fn repeated<T, F>(&self, operation: impl Fn() -> F) -> Result<T, TopologyError>
    where
        F: Future<Output = Result<T, TopologyError>>,
    {
        let connected = self.is_connected().await;
        match operation().await {
            Err(TopologyError::Unreachable { .. }) if connected => operation().await,
            answer => answer,
        }
    }
}

/// The meaning of `error` for a caller that asked the server at `address` for the topology.
pub(super) fn failed(address: &str, error: ShardError) -> TopologyError {
    let address = address.to_owned();
    match error {
        ShardError::Unusable { reason } => TopologyError::Seeds(reason),
        ShardError::Refused { .. } => TopologyError::Malformed(format!("{address}: {error}")),
        ShardError::Unreachable { reason } | ShardError::NoReply { reason } => {
            let prefix = format!("{address}: ");
            let reason = reason.strip_prefix(&prefix).unwrap_or(&reason).to_owned();
            TopologyError::Unreachable { address, reason }
        }
        ShardError::Overloaded { .. } | ShardError::Unarmed | ShardError::Stale { .. } => {
            TopologyError::Unreachable {
                address,
                reason: error.to_string(),
            }
        }
    }
}
