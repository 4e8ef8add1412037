//! The contract of whatever keeps the topology record.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{Topology, Version};
use crate::ids::Incarnation;

/// What came of a compare-and-swap.
#[derive(Clone, Debug)]
pub enum Swap {
    /// The new record is in force, and as many copies of it are made as must be before anything
    /// is done in its name.
    Done,
    /// Somebody else's record was: nothing was written.
    Newer(Arc<Topology>),
}

/// Why a store gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The store cannot be reached, or did not answer: a swap may have been applied. Locks go on
    /// with the last view; try again.
    #[error("topology unavailable at {address}: {reason}")]
    Unreachable {
        /// Where it is.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The store has no record that may be used, and it could not be put right by itself: the
    /// message says what is missing, and the command for when it is gone for good. Locks go on with
    /// the last view.
    #[error("no usable topology record at {address}: {reason}")]
    RecoverNeeded {
        /// Where it was looked for.
        address: String,
        /// What was found.
        reason: String,
    },
    /// There was a record, and nothing is left of it. The message says what mends it.
    #[error("{0}")]
    Lost(String),
    /// Every epoch has been allotted.
    #[error("epochs are used up: they end in the year 2110")]
    NoEpochs,
    /// There is none, and none was to be founded.
    #[error("no topology on these servers")]
    Absent,
    /// The addresses given do not make one topology. The message names them.
    #[error("{0}")]
    Seeds(String),
    /// What is asked for cannot be founded. The message says why.
    #[error("cannot found a topology: {0}")]
    Founding(String),
    /// The record there cannot be read, or the one to be put there cannot follow it.
    #[error("{0}")]
    Malformed(String),
}

impl TopologyError {
    /// Whether the same call may succeed if made again.
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
}

/// Refuses a record that does not come after the one it is to replace: of an older incarnation,
/// say.
pub(super) fn check_next(expected: Version, next: &Topology) -> Result<(), TopologyError> {
    if next.version() > expected {
        return Ok(());
    }
    let ((incarnation, version), (n, v)) = (expected, next.version());
    Err(TopologyError::Malformed(format!(
        "topology version {v} of incarnation {n} cannot follow {version} of {incarnation}"
    )))
}

/// Keeps the one topology record.
///
/// # Contract
///
/// Every implementation passes [`conformance`](super::conformance). Swaps are linearizable: of two
/// that expect the same version, one is [`Swap::Done`]. There are no default methods.
#[async_trait]
pub trait TopologyStore: fmt::Debug + Send + Sync + 'static {
    /// The record in force. A store that lost it, and can tell that nobody has a later one, puts
    /// the newest that is left back in force first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave that undone: the next call, of any process, does it.
    async fn load(&self) -> Result<Arc<Topology>, TopologyError>;

    /// Puts `next` in the place of the record at version `expected`.
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

    /// Learns that a shard has seen `incarnation`: no record below it is in force any more.
    fn outrun(&self, incarnation: Incarnation);
}

// Keeps it usable as a trait object.
const _: Option<&dyn TopologyStore> = None;
