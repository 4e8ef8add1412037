//! The contract of the store of the topology record.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_segment_lock::{Effect, impl_failure};

use super::{Topology, Version};
use crate::{clock::Instant, ids::Incarnation};

/// The result of a compare-and-swap.
#[derive(Clone, Debug)]
pub enum Swap {
    /// The new record is in force, and it has all the copies that are required before anything is
    /// done in its name.
    Done,
    /// Another record was in force: nothing was written.
    Newer(Arc<Topology>),
}

/// What the members other than the home have of the record.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// The newest: it was in force, and may be no more.
    pub newest: Option<Arc<Topology>>,
    /// When they were asked, if all answered.
    pub of_all_at: Option<Instant>,
}

/// The reason why a store gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The store cannot be reached, or did not answer: a swap may have been applied. Locks go on
    /// with the last view; try again.
    #[error("topology unavailable at {address}: {reason}")]
    Unreachable {
        /// Its address.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The store has no usable record, and could not recover one by itself. The message says what
    /// is missing, and names the command for a loss for good. Locks go on with the last view.
    #[error("no usable topology record at {address}: {reason}")]
    RecoverNeeded {
        /// The address of the expected record.
        address: String,
        /// The record found instead.
        reason: String,
    },
    /// There was a record, and nothing is left of it. The message names the remedy.
    #[error("{0}")]
    Lost(String),
    /// Every epoch has been allotted.
    #[error("epochs are used up: they end in the year 2110")]
    NoEpochs,
    /// There is no topology, and founding one was not allowed.
    #[error("these servers have no topology: they are new, or were emptied")]
    Absent,
    /// The given addresses do not form one topology. The message names them.
    #[error("{0}")]
    Seeds(String),
    /// The requested topology cannot be founded. The message gives the reason.
    #[error("cannot found a topology: {0}")]
    Founding(String),
    /// The record there cannot be read, or the new record cannot follow it.
    #[error("{0}")]
    Malformed(String),
}

impl TopologyError {
    /// Whether a repeat of the same call may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::RecoverNeeded { .. } => true,
            Self::Lost(_)
            | Self::NoEpochs
            | Self::Absent
            | Self::Seeds(_)
            | Self::Founding(_)
            | Self::Malformed(_) => false,
        }
    }

    /// Whether the record may have been changed by the call.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Unreachable { .. } | Self::RecoverNeeded { .. } => Effect::Unknown,
            Self::Lost(_)
            | Self::NoEpochs
            | Self::Absent
            | Self::Seeds(_)
            | Self::Founding(_)
            | Self::Malformed(_) => Effect::None,
        }
    }

    /// The store does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl_failure!(TopologyError);

/// Refuses a record that cannot follow the one that it replaces, such as one of an older
/// incarnation.
pub(super) fn check_next(expected: Version, next: &Topology) -> Result<(), TopologyError> {
    if next.version() > expected {
        return Ok(());
    }
    let ((incarnation, version), (n, v)) = (expected, next.version());
    Err(TopologyError::Malformed(format!(
        "topology version {v} of incarnation {n} cannot follow {version} of {incarnation}"
    )))
}

/// Stores the one topology record.
///
/// # Contract
///
/// Every implementation passes `topology_conformance!` of `ringfence-conformance`. Swaps are
/// linearizable: of two that expect the same version, one is [`Swap::Done`]. There are no default
/// methods.
#[async_trait]
pub trait TopologyStore: fmt::Debug + Send + Sync + 'static {
    /// The record in force. A store that has lost it, and can tell that no member has a later one,
    /// first puts the newest remaining record back in force.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave that undone: the next call, of any process, does it.
    async fn load(&self) -> Result<Arc<Topology>, TopologyError>;

    /// Replaces the record at version `expected` by `next`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Malformed`]: `next` is not newer than `expected`; nothing was written.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave `next` in force: load to see.
    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError>;

    /// Waits for a record newer than `known`.
    ///
    /// # Cancel safety
    ///
    /// As [`load`](Self::load).
    async fn watch(&self, known: Version) -> Result<Arc<Topology>, TopologyError>;

    /// The copies of the record: an engine goes by the newest while the home is silent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    async fn copies(&self) -> Copies;

    /// A shard has seen `incarnation`: no lower record is in force any more.
    fn outrun(&self, incarnation: Incarnation);
}

// Keeps it usable as a trait object.
const _: Option<&dyn TopologyStore> = None;
