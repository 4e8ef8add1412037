//! Slots on their way from shard to shard.

use std::collections::BTreeMap;

use ringfence_ring::Slot;
use serde::{Deserialize, Serialize};

use super::{ShardName, slots};
use crate::ids::Epoch;

/// Weights of the members, by their names.
pub type Weights = BTreeMap<ShardName, u32>;

/// Where a resize goes. Which slots have still to move follows from it and from the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The members before: where it goes once it is aborted.
    pub before: Weights,
    /// The members after.
    pub after: Weights,
}

/// Slots on their way from one shard to another, by one move. Until they are there they are the former
/// shard's in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Motion {
    /// Of the move: allotted for it, and used for no other change of a slot.
    pub epoch: Epoch,
    /// Whose the slots were.
    pub from: ShardName,
    /// Whose they will be.
    pub to: ShardName,
    /// The next shard has the list of what the former one holds: ask it first.
    pub listed: bool,
    /// The slots, in order.
    #[serde(with = "slots")]
    pub slots: Vec<Slot>,
}
