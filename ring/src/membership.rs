use crate::limits::SHARDS_MAX;
use crate::{RingError, ShardId, SlotCount, Weight};

/// The shards that share the slots, and their weights. Sorted by id, so that the order in which
/// shards are given never matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    slots: SlotCount,
    /// Sorted, distinct, 1 to the lesser of `slots` and [`SHARDS_MAX`].
    shards: Vec<ShardId>,
    /// One per shard, in the order of `shards`.
    weights: Vec<Weight>,
}

impl Membership {
    /// Checks and sorts `shards`.
    ///
    /// # Errors
    ///
    /// * [`RingError::OutOfRange`]: no shard, or more than 1,024.
    /// * [`RingError::DuplicateShard`]: one id twice.
    /// * [`RingError::MoreShardsThanSlots`]: a shard would go without a slot.
    pub fn new(
        slots: SlotCount,
        shards: impl IntoIterator<Item = (ShardId, Weight)>,
    ) -> Result<Self, RingError> {
        let mut shards: Vec<_> = shards.into_iter().collect();
        RingError::check("shards", shards.len() as u64, 1, SHARDS_MAX as u64)?;
        if shards.len() > slots.get() as usize {
            return Err(RingError::MoreShardsThanSlots {
                shards: shards.len(),
                slots: slots.get(),
            });
        }
        shards.sort();
        if let Some(twice) = shards.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(RingError::DuplicateShard {
                id: twice[0].0.clone(),
            });
        }
        let (shards, weights) = shards.into_iter().unzip();
        Ok(Self {
            slots,
            shards,
            weights,
        })
    }

    /// The number of slots to share.
    pub fn slots(&self) -> SlotCount {
        self.slots
    }

    /// The shards, sorted by id; never empty.
    pub fn shards(&self) -> &[ShardId] {
        &self.shards
    }

    /// Their weights, in the order of [`shards`](Self::shards).
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// The index of `id` in [`shards`](Self::shards).
    pub fn index_of(&self, id: &ShardId) -> Option<usize> {
        self.shards.binary_search(id).ok()
    }

    /// The weight of `id`, if it is a member.
    pub fn weight(&self, id: &ShardId) -> Option<Weight> {
        self.index_of(id).map(|index| self.weights[index])
    }
}
