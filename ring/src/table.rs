use std::fmt;

use crate::{Membership, ShardId, Slot, SlotCount};

/// The owner of each slot. Stored, never recomputed, because the locks are there.
#[derive(Clone, PartialEq, Eq)]
pub struct Table {
    membership: Membership,
    /// Owner of each slot, as an index into the membership's shards.
    owners: Box<[u16]>,
}

impl fmt::Debug for Table {
    /// Without the slots, of which there are thousands.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Table")
            .field("membership", &self.membership)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// `owners` has one index for each slot, each less than the number of shards.
    pub(crate) fn new(membership: Membership, owners: Vec<u16>) -> Self {
        debug_assert_eq!(owners.len(), membership.all_slots().len());
        debug_assert!(
            owners
                .iter()
                .all(|&owner| usize::from(owner) < membership.shards().len())
        );
        Self {
            membership,
            owners: owners.into(),
        }
    }

    /// The shards and weights that the table was made for.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The number of slots, before they are multiplied by the replicas.
    #[inline]
    pub fn slots(&self) -> SlotCount {
        self.membership.slots()
    }

    /// Every slot of every rank, in order.
    pub fn all_slots(&self) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator + use<> {
        self.membership.all_slots()
    }

    /// The shards, sorted by id.
    pub fn shards(&self) -> &[ShardId] {
        self.membership.shards()
    }

    /// The shard that owns `slot`. O(1).
    ///
    /// # Panics
    ///
    /// If `slot` comes from a greater [`SlotCount`] than this table's, or from more replicas.
    #[inline]
    pub fn owner(&self, slot: Slot) -> &ShardId {
        &self.membership.shards()[self.owner_index(slot)]
    }

    /// The index of the owner of `slot` in [`shards`](Self::shards). O(1).
    ///
    /// # Panics
    ///
    /// If `slot` comes from a greater [`SlotCount`] than this table's, or from more replicas.
    #[inline]
    pub fn owner_index(&self, slot: Slot) -> usize {
        usize::from(self.owners[slot.index()])
    }

    /// The slots that `id` owns, of every rank, in order; none if it is not a member.
    pub fn slots_of<'a>(&'a self, id: &ShardId) -> impl Iterator<Item = Slot> + use<'a> {
        let index = self.membership.index_of(id);
        self.all_slots()
            .filter(move |&slot| Some(self.owner_index(slot)) == index)
    }

    /// The number of slots of each shard, in the order of [`shards`](Self::shards).
    pub fn quotas(&self) -> Vec<u32> {
        let mut quotas = vec![0; self.shards().len()];
        self.owners
            .iter()
            .for_each(|&owner| quotas[usize::from(owner)] += 1);
        quotas
    }

    /// The number of slots of `id`; 0 if it is not a member.
    pub fn quota(&self, id: &ShardId) -> u32 {
        self.slots_of(id).count() as u32
    }

    /// The fraction of all slots of every rank that `id` owns, 0 to 1; 0 if it is not a member.
    pub fn share(&self, id: &ShardId) -> f64 {
        f64::from(self.quota(id)) / self.all_slots().len() as f64
    }

    /// The shards of all replicas of `slot`, by rank. `slot` has any rank.
    pub fn replicas(&self, slot: Slot) -> impl ExactSizeIterator<Item = &ShardId> {
        let ranks = self.slots().replicas(slot, self.membership.replicas());
        ranks.map(|rank| self.owner(rank))
    }

    /// Owner of each slot, as an index into the shards.
    pub(crate) fn owners(&self) -> &[u16] {
        &self.owners
    }

    /// `owner` is less than the number of shards.
    pub(crate) fn set_owner(&mut self, slot: Slot, owner: usize) {
        debug_assert!(owner < self.shards().len());
        self.owners[slot.index()] = owner as u16;
    }
}
