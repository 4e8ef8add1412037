//! Slots of a shard that was declared dead, opened without asking it.
//!
//! ```text
//! declared dead ─► no client may use it any more ─► force_open ─► grace: holders put their locks back ─► open
//! ```

use std::time::Duration;

use ringfence_ring::Slot;

use crate::ids::{Epoch, Incarnation};

/// Opens slots that another shard had, or had a part in, once no client may use that shard any more. Holders reclaim
/// their locks, as after a restart, while nothing new is granted in these slots.
///
/// It may be repeated, by anybody: grace begins once for an epoch, and a slot changes only if its guard rises.
#[derive(Clone, Debug)]
pub struct ForceOpen {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// As in [`Step`](super::Step).
    pub copy: (u64, String),
    /// Allotted after the last client stopped using the other shard. The next tokens are above it, and so above
    /// every token that the other shard confirmed.
    pub epoch: Epoch,
    /// Which ones.
    pub slots: Vec<Slot>,
    /// How long nothing new is granted: until then, a client may hold a lock that the dead shard granted.
    pub grace_for: Duration,
}

/// What came of a [`ForceOpen`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedOpen {
    /// How long nothing new is granted in these slots.
    pub grace_left: Duration,
    /// Slots left as they were: their guard is higher, or as high in another mode.
    pub refused: Vec<Slot>,
}
