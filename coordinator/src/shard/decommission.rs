//! Slots of a shard that was declared dead, opened without asking it.
//!
//! ```text
//! declared dead at e ─► shut: engines stop believing in it ─► grace: holders put their locks back ─► open
//! ```

use std::time::Duration;

use ringfence_ring::Slot;

use crate::ids::{Epoch, Incarnation};

/// Opens slots that another shard had, or had a part in. Holders reclaim their locks, as after
/// a restart; and the timers are the whole shard's, as they are then.
///
/// It may be repeated, by anybody: timers run once for an epoch, and a slot changes only if its guard rises.
#[derive(Clone, Debug)]
pub struct ForceOpen {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// As in [`Step`](super::Step).
    pub copy: (u64, String),
    /// Of the change that gave the other shard up. The next tokens are above it.
    pub epoch: Epoch,
    /// Which ones.
    pub slots: Vec<Slot>,
    /// How long nothing is granted or reclaimed: until then, a process may still use the dead shard.
    pub shut_for: Duration,
    /// How long nothing new is granted after that: until then, a client may hold a lock that the dead shard granted.
    pub grace_for: Duration,
}

/// What came of a [`ForceOpen`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedOpen {
    /// How long nothing new is granted.
    pub grace_left: Duration,
    /// Slots left as they were: their guard is higher, or as high in another mode.
    pub refused: Vec<Slot>,
}
