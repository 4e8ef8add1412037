use std::collections::BTreeMap;

use crate::limits::SHARDS_MAX;
use crate::{Replicas, RingError, ShardId, Slot, SlotCount, Weight, Zone};

/// The shards that share the slots, their weights and zones, and the number of replicas of each
/// slot. Sorted by id, so that the order in which shards are given never matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    slots: SlotCount,
    /// Sorted, distinct, 1 to the lesser of `slots` and [`SHARDS_MAX`].
    shards: Vec<ShardId>,
    /// One per shard, in the order of `shards`.
    weights: Vec<Weight>,
    /// One per shard, in the order of `shards`.
    zones: Vec<Option<Zone>>,
    replicas: Replicas,
}

impl Membership {
    /// Checks and sorts `shards`, for one replica of each slot and without zones.
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
        let (shards, weights): (Vec<_>, _) = shards.into_iter().unzip();
        Ok(Self {
            slots,
            zones: vec![None; shards.len()],
            shards,
            weights,
            replicas: Replicas::One,
        })
    }

    /// The same with `replicas` of each slot, and each shard in the zone that `zone_of` gives it.
    ///
    /// # Errors
    ///
    /// * [`RingError::FewerShardsThanReplicas`], [`RingError::FewerZonesThanReplicas`]: the replicas
    ///   of a slot lie on distinct shards, in distinct zones. A shard without a zone counts as one.
    pub fn replicated(
        mut self,
        replicas: Replicas,
        zone_of: impl Fn(&ShardId) -> Option<Zone>,
    ) -> Result<Self, RingError> {
        self.zones = self.shards.iter().map(zone_of).collect();
        self.replicas = replicas;
        let (shards, needed) = (self.shards.len(), replicas.get() as usize);
        if shards < needed {
            return Err(RingError::FewerShardsThanReplicas { shards, replicas });
        }
        let zones = self.fate_count();
        match zones < needed {
            true => Err(RingError::FewerZonesThanReplicas { zones, replicas }),
            false => Ok(self),
        }
    }

    /// The number of slots to share, before they are multiplied by the replicas.
    pub fn slots(&self) -> SlotCount {
        self.slots
    }

    /// The number of replicas of each slot.
    pub fn replicas(&self) -> Replicas {
        self.replicas
    }

    /// Every slot of every rank, in order.
    pub fn all_slots(&self) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator + use<> {
        self.slots.all(self.replicas)
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

    /// The zone of `id`, if it is a member and has one.
    pub fn zone(&self, id: &ShardId) -> Option<&Zone> {
        self.index_of(id)
            .and_then(|index| self.zones[index].as_ref())
    }

    /// The zones, in the order of [`shards`](Self::shards).
    pub(crate) fn zones(&self) -> &[Option<Zone>] {
        &self.zones
    }

    /// A number for each shard, in the order of [`shards`](Self::shards): equal for those in one
    /// zone, below [`fate_count`](Self::fate_count). A shard without a zone has its own.
    pub(crate) fn fates(&self) -> Vec<usize> {
        let mut numbers = BTreeMap::new();
        let mut new = 0..;
        let mut next = move || new.next().expect("shards are fewer than numbers");
        let zones = self.zones.iter().map(|zone| match zone {
            Some(zone) => *numbers.entry(zone).or_insert_with(&mut next),
            None => next(),
        });
        zones.collect()
    }

    /// How many zones there are. A shard without a zone counts as one.
    pub(crate) fn fate_count(&self) -> usize {
        self.fates().into_iter().max().map_or(0, |last| last + 1)
    }
}
