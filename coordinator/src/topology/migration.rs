//! Slots that migrate from shard to shard.

use std::collections::BTreeMap;

use ringfence_ring::Slot;
use serde::{Deserialize, Serialize};

use super::{ShardName, Topology, slots};
use crate::ids::Epoch;

/// Weights of the members, by name.
pub type Weights = BTreeMap<ShardName, u32>;

/// The goal of a resize. The remaining moves follow from it and from the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The members before: the goal after an abort.
    pub before: Weights,
    /// The members after.
    pub after: Weights,
}

/// Slots that migrate from one shard to another, by one move. Until they have arrived, they belong to
/// the former shard in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// The epoch of the move: allotted for it, and used for no other change of a slot.
    pub epoch: Epoch,
    /// The former shard.
    pub from: ShardName,
    /// The next shard.
    pub to: ShardName,
    /// The next shard has the list of the keys that the former one holds: ask the next shard first.
    pub listed: bool,
    /// The slots, in order.
    #[serde(with = "slots")]
    pub slots: Vec<Slot>,
}

/// Identifies a migration: no two of a record have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigrationId {
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The former shard.
    pub from: ShardName,
    /// The next shard.
    pub to: ShardName,
}

impl Migration {
    /// Its identifier.
    pub fn id(&self) -> MigrationId {
        MigrationId {
            epoch: self.epoch,
            from: self.from.clone(),
            to: self.to.clone(),
        }
    }
}

impl Topology {
    /// The migration with that identifier.
    pub fn migration(&self, id: &MigrationId) -> Option<&Migration> {
        self.migrations
            .iter()
            .find(|migration| migration.id() == *id)
    }

    /// Whether each slot is migrating, by its index.
    pub(super) fn migrating(&self) -> Vec<bool> {
        let mut moves = vec![false; self.table.all_slots().len()];
        for slot in self
            .migrations
            .iter()
            .flat_map(|migration| &migration.slots)
        {
            moves[slot.index()] = true;
        }
        moves
    }
}

/// Moves of `epoch` that have not begun yet: each from one shard to another.
pub(super) fn moves_of(
    epoch: Epoch,
    moves: impl IntoIterator<Item = (ShardName, ShardName, Vec<Slot>)>,
) -> Vec<Migration> {
    let mut of_pair: BTreeMap<_, Vec<Slot>> = BTreeMap::new();
    for (from, to, slots) in moves {
        of_pair.entry((from, to)).or_default().extend(slots);
    }
    let migration = |((from, to), mut slots): ((ShardName, ShardName), Vec<Slot>)| {
        slots.sort_unstable();
        Migration {
            epoch,
            from,
            to,
            listed: false,
            slots,
        }
    };
    of_pair.into_iter().map(migration).collect()
}
