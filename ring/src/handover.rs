//! Tables between one membership and another, slot by slot.

use crate::{Membership, Replicas, RingError, ShardId, Slot, Table, spread};

impl Table {
    /// The same owners among other members. The new members may own nothing yet, or have other
    /// weights.
    ///
    /// # Errors
    ///
    /// * [`RingError::SlotsChanged`], [`RingError::ReplicasChanged`]: these numbers are fixed.
    /// * [`RingError::OwnerLeft`]: a shard that is not among `members` owns a slot.
    pub fn among(&self, members: &Membership) -> Result<Self, RingError> {
        self.check_slots(members)?;
        let index: Vec<_> = self
            .shards()
            .iter()
            .map(|id| members.index_of(id))
            .collect();
        let owner = |&owner: &u16| match index[usize::from(owner)] {
            Some(owner) => Ok(owner as u16),
            None => Err(self.owner_left(&self.shards()[usize::from(owner)])),
        };
        let owners = self.owners().iter().map(owner).collect::<Result<_, _>>()?;
        Ok(Self::new(members.clone(), owners))
    }

    /// The same with further replicas of each slot: the slots of new ranks, and no slot moves.
    ///
    /// # Errors
    ///
    /// * [`RingError::FewerShardsThanReplicas`], [`RingError::FewerZonesThanReplicas`].
    /// * [`RingError::ReplicasChanged`]: the table has more replicas already.
    pub fn replicated(&self, replicas: Replicas) -> Result<Self, RingError> {
        let (table, target) = (self.membership().replicas(), replicas);
        if target < table {
            return Err(RingError::ReplicasChanged { table, target });
        }
        let zone_of = |id: &ShardId| self.membership().zone(id).cloned();
        let members = self.membership().clone().replicated(replicas, zone_of)?;
        let owners = spread::extended(self, &members);
        Ok(Self::new(members, owners))
    }

    /// Refuses members for another number of slots, or of replicas.
    pub(crate) fn check_slots(&self, target: &Membership) -> Result<(), RingError> {
        if self.slots() != target.slots() {
            let (table, target) = (self.slots().get(), target.slots().get());
            return Err(RingError::SlotsChanged { table, target });
        }
        let (table, target) = (self.membership().replicas(), target.replicas());
        match table == target {
            true => Ok(()),
            false => Err(RingError::ReplicasChanged { table, target }),
        }
    }

    /// Makes `to` the owner of `slot`.
    ///
    /// # Errors
    ///
    /// [`RingError::UnknownShard`]: `to` is not a member.
    ///
    /// # Panics
    ///
    /// If `slot` comes from a greater [`SlotCount`](crate::SlotCount) than this table's.
    pub fn give(&mut self, slot: Slot, to: &ShardId) -> Result<(), RingError> {
        let Some(owner) = self.membership().index_of(to) else {
            return Err(RingError::UnknownShard { id: to.clone() });
        };
        self.set_owner(slot, owner);
        Ok(())
    }

    fn owner_left(&self, id: &ShardId) -> RingError {
        RingError::OwnerLeft {
            id: id.clone(),
            slots: self.quota(id),
        }
    }
}
