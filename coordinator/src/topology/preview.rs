//! The effects of a resize, computed without doing it.

use std::collections::BTreeMap;

use ringfence_ring::{RingError, ShardId, Table};

use super::{ShardName, Topology, TopologyError, resize::membership, turn::malformed};

/// The rest of a resize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Every shard before or after the resize.
    pub shards: Vec<Share>,
    /// How many slots go from one shard to another, including those migrating now; never 0.
    pub moves: BTreeMap<(ShardId, ShardId), u32>,
    /// How many slots the whole resize moves, including those that have arrived. The record does
    /// not remember arrivals: this number follows from the weights before and after.
    pub slots_in_all: u32,
    /// The number of slots of every rank.
    pub slots: u32,
}

/// A shard's share of the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The shard.
    pub id: ShardId,
    /// Its slots now, without those migrating to it.
    pub slots_before: u32,
    /// Its slots after the resize.
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
    /// The rest of the resize under way; of one just [begun](Self::begin), all of it. Without a
    /// resize, the shares as they are.
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
        for migration in &self.migrations {
            count(&migration.from.0, &migration.to.0, migration.slots.len());
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
            slots: self.table.all_slots().len() as u32,
        })
    }

    /// The number of slots that shards lose in `after`, summed over all shards, against their slots
    /// before the resize.
    fn in_all(&self, after: &Table) -> Result<u32, RingError> {
        let Some(goal) = &self.goal else {
            return Ok(0);
        };
        let before = self.table.plan(&membership(&self.table, &goal.before)?)?;
        let before = before.table();
        let gives = |id: &ShardId| before.quota(id).saturating_sub(after.quota(id));
        Ok(before.shards().iter().map(gives).sum())
    }
}
