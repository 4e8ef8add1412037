//! What a resize will do, told without doing any of it.

use std::collections::BTreeMap;

use ringfence_ring::{RingError, ShardId, Table};

use super::{ShardName, Topology, TopologyError, resize::membership, turn::malformed};

/// What is left to do of a resize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Every shard there is before or after.
    pub shards: Vec<Share>,
    /// How many slots go from one shard to another, slots in motion among them; never 0.
    pub moves: BTreeMap<(ShardId, ShardId), u32>,
    /// How many slots the whole resize moves, those that have arrived among them. What has arrived is not
    /// remembered: this is what the weights before and after come to.
    pub slots_in_all: u32,
    /// How many slots there are.
    pub slots: u32,
}

/// A shard's part of the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The shard.
    pub id: ShardId,
    /// Slots that it has now, those in motion to it not among them.
    pub slots_before: u32,
    /// Slots that it will have.
    pub slots_after: u32,
    /// Its weight after; `None`: it leaves.
    pub weight_after: Option<u32>,
}

impl Preview {
    /// How many slots have to move.
    pub fn slots_to_move(&self) -> u32 {
        self.moves.values().sum()
    }
}

impl Topology {
    /// What is left to do of the resize under way; of one just [begun](Self::begin), all of it. Without
    /// one, the shares as they are.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Malformed`]: the record contradicts itself.
    pub fn preview(&self) -> Result<Preview, TopologyError> {
        let plan = self.plan().map_err(malformed)?;
        let after = plan.as_ref().map_or(&self.table, |plan| plan.table());
        let mut moves = BTreeMap::new();
        let mut count = |from: &ShardId, to: &ShardId, slots: usize| {
            *moves.entry((from.clone(), to.clone())).or_insert(0) += slots as u32;
        };
        for motion in &self.motions {
            count(&motion.from.0, &motion.to.0, motion.slots.len());
        }
        for step in plan.iter().flat_map(|plan| plan.moves()) {
            count(&step.from, &step.to, 1);
        }
        let share = |ShardName(id): &ShardName| Share {
            id: id.clone(),
            slots_before: self.table.quota(id),
            slots_after: after.quota(id),
            weight_after: after.membership().weight(id).map(|weight| weight.get()),
        };
        let to_move = moves.values().sum();
        let in_all = self.in_all(after).map_err(malformed)?;
        Ok(Preview {
            shards: self.shards.keys().map(share).collect(),
            moves,
            slots_in_all: in_all.max(to_move),
            slots: self.table.slots().get(),
        })
    }

    /// How many slots are less, over all shards, in `after` than they were before the resize.
    fn in_all(&self, after: &Table) -> Result<u32, RingError> {
        let Some(goal) = &self.goal else {
            return Ok(0);
        };
        let before = self
            .table
            .plan(&membership(self.table.slots(), &goal.before)?)?;
        let before = before.table();
        let gives = |id: &ShardId| before.quota(id).saturating_sub(after.quota(id));
        Ok(before.shards().iter().map(gives).sum())
    }
}
