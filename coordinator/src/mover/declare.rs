//! Declares that each lock of a namespace has several replicas, while processes use the ring.
//!
//! A process with an older view would acquire such a lock at one shard. So the record first says that the namespace is being
//! declared, and every shard learns to refuse acquires by older views. Then, once no lock of the namespace is held, the
//! record declares it.

use std::time::Duration;

use futures_util::future::try_join_all;
use ringfence_ring::{Replicas, ShardId};
use ringfence_segment_lock::impl_failure;
use tokio::time::sleep;

use super::Context;
use crate::{
    arming::{ArmError, Arming, Known},
    backoff::Backoff,
    clock::Instant,
    limits::TICKET_KEEP,
    name::Namespace,
    shard::{ControlLink, Declare, Effect, List, ShardError},
    topology::{DeclareError, ShardName, Swap, Topology, TopologyError},
};

/// First and longest pause before a shard is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// How long a shard may give no answer, in addition to recovery periods.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why a namespace was not declared.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The record does not allow it.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// A lock of the namespace is held.
    #[error(
        "namespace {namespace} is in use, at shard {shard}: release its locks, let no process ask for them, and repeat"
    )]
    InUse {
        /// The namespace.
        namespace: Namespace,
        /// The shard.
        shard: ShardId,
    },
    /// A shard does not answer.
    #[error("whether namespace {namespace} is in use is unknown: shard {shard}: {error}")]
    Unknown {
        /// The namespace.
        namespace: Namespace,
        /// The shard.
        shard: ShardId,
        /// Its error.
        error: ShardError,
    },
    /// The store of the topology gave no answer. The locks of the namespace may be refused until the call is repeated.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl NamespaceError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Declare(error) => error.is_retryable(),
            Self::InUse { .. } | Self::Unknown { .. } => true,
            Self::Topology(error) => error.is_retryable(),
        }
    }

    /// Whether the namespace may be declared, or its locks refused.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Declare(error) => error.effect(),
            Self::InUse { .. } | Self::Unknown { .. } => Effect::None,
            Self::Topology(error) => error.effect(),
        }
    }

    /// The topology does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl_failure!(NamespaceError);

impl Context {
    /// As [`Mover::declare`](super::Mover::declare).
    pub(super) async fn declare(
        &self,
        namespace: &Namespace,
        replicas: Replicas,
    ) -> Result<(), NamespaceError> {
        if replicas != Replicas::One {
            self.reach_all(namespace).await?;
        }
        let begin = |topology: &Topology| topology.begin_declaration(namespace, replicas);
        let Some(begun) = self.swapped(begin).await? else {
            return Ok(());
        };
        let finished = match self.clear(&begun, namespace, replicas).await {
            Ok(()) => {
                let unix = self.clock.unix();
                let finish =
                    |topology: &Topology| topology.finish_declaration(begun.declared, unix);
                self.swapped(finish).await.map(drop)
            }
            Err(error) => Err(error),
        };
        if finished
            .as_ref()
            .is_err_and(|error| !matches!(error, NamespaceError::Topology(_)))
        {
            let undo = |topology: &Topology| Ok(topology.undo_declaration());
            self.swapped(undo).await?;
        }
        finished
    }

    /// Sees that every shard answers, before any refuses a lock of `namespace`.
    async fn reach_all(&self, namespace: &Namespace) -> Result<(), NamespaceError> {
        let topology = self.store.load().await?;
        let reached = topology
            .shards
            .iter()
            .map(async |(ShardName(shard), entry)| {
                let link = async { self.dial.dial(shard, entry)?.connect_control(None).await };
                let reached = link.await.map(drop);
                reached.map_err(|error| unknown(namespace, shard, error))
            });
        try_join_all(reached).await.map(drop)
    }

    /// Puts the record in force that `next` makes of the present one. Returns it; `None` if `next` makes none.
    async fn swapped(
        &self,
        next: impl Fn(&Topology) -> Result<Option<Topology>, DeclareError>,
    ) -> Result<Option<Topology>, NamespaceError> {
        let mut topology = self.store.load().await?;
        loop {
            let Some(next) = next(&topology)? else {
                return Ok(None);
            };
            match self.store.swap(topology.version(), &next).await? {
                Swap::Done => return Ok(Some(next)),
                Swap::Newer(newer) => topology = newer,
            }
        }
    }

    /// Has every shard refuse acquires by views from before `begun`, and sees that no lock of `namespace` is held.
    async fn clear(
        &self,
        begun: &Topology,
        namespace: &Namespace,
        replicas: Replicas,
    ) -> Result<(), NamespaceError> {
        if replicas == Replicas::One {
            return Ok(());
        }
        let grace = begun.constants.grace();
        let until = self.clock.now() + grace + grace + TICKET_KEEP + PATIENCE;
        let shards = begun.shards.keys();
        let cleared =
            shards.map(|ShardName(shard)| self.clear_shard(begun, shard, namespace, until));
        try_join_all(cleared).await.map(drop)
    }

    /// Repeated until the shard answers.
    async fn clear_shard(
        &self,
        begun: &Topology,
        shard: &ShardId,
        namespace: &Namespace,
        until: Instant,
    ) -> Result<(), NamespaceError> {
        let mut pauses = Backoff::new(RETRY.0, RETRY.1);
        let mut known = Known::default();
        loop {
            let error = match self.is_held(begun, shard, namespace, &mut known).await {
                Ok(false) => return Ok(()),
                Ok(true) => {
                    let (namespace, shard) = (namespace.clone(), shard.clone());
                    return Err(NamespaceError::InUse { namespace, shard });
                }
                Err(error) => error,
            };
            let pause = pauses.next(&self.random);
            if self.clock.now() + pause >= until {
                return Err(unknown(namespace, shard, error));
            }
            sleep(pause).await;
        }
    }

    /// Whether a lock of `namespace` is held at `shard`, once no older view can acquire one. The shard is in the life that the
    /// topology names, and any later life is armed by a record that has the declaration.
    async fn is_held(
        &self,
        begun: &Topology,
        shard: &ShardId,
        namespace: &Namespace,
        known: &mut Known,
    ) -> Result<bool, ShardError> {
        let topology = self.store.load().await.map_err(unreachable)?;
        let Some(entry) = topology.shard(shard) else {
            // Its slots moved, so the declaration cannot be finished.
            return Ok(false);
        };
        let mut link = self.dial.dial(shard, entry)?.connect_control(None).await?;
        let arming = Arming {
            shard,
            store: &*self.store,
            clock: &*self.clock,
            random: &self.random,
            servers_are_new: self.servers_are_new,
        };
        match arming.bring_up(&mut *link, topology, known).await {
            Ok(_) => {}
            Err(ArmError::Shard(error)) => return Err(error),
            Err(ArmError::Topology(error)) => return Err(unreachable(error)),
        }
        let declare = Declare {
            incarnation: begun.incarnation,
            copy: (begun.version, begun.encode()),
            declared: begun.declared,
        };
        let grace_left = link.declare(&declare).await?;
        // Holders put their locks back until then, and waiters of before may be granted locks.
        sleep(grace_left.max(TICKET_KEEP) + TICKET_KEEP / 10).await;
        lists(&mut *link, namespace).await
    }
}

fn unknown(namespace: &Namespace, shard: &ShardId, error: ShardError) -> NamespaceError {
    NamespaceError::Unknown {
        namespace: namespace.clone(),
        shard: shard.clone(),
        error,
    }
}

fn unreachable(error: TopologyError) -> ShardError {
    ShardError::Unreachable {
        reason: error.to_string(),
    }
}

/// Whether the shard lists a lock of `namespace`.
async fn lists(link: &mut dyn ControlLink, namespace: &Namespace) -> Result<bool, ShardError> {
    let mut list = List {
        namespace: Some(namespace.clone()),
        after: None,
    };
    loop {
        let page = link.list(&list).await?;
        if !page.locks.is_empty() {
            return Ok(true);
        }
        match page.next {
            None => return Ok(false),
            after => list.after = after,
        }
    }
}
