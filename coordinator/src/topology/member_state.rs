//! The part of a shard in the topology, with the resize under way.

use ringfence_ring::{ShardId, Weight};
use serde::Serialize;

use super::{ShardName, Topology};

/// Whether a shard joins or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It stays.
    Member,
    /// It joins by the resize under way.
    Joining,
    /// It leaves by the resize under way, as soon as its last slot has moved.
    Leaving,
}

impl MemberState {
    /// The name, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Joining => "joining",
            Self::Leaving => "leaving",
        }
    }
}

impl Topology {
    /// Whether `shard` joins or leaves.
    pub fn member_state(&self, shard: &ShardId) -> MemberState {
        let Some(goal) = &self.goal else {
            return MemberState::Member;
        };
        let name = ShardName(shard.clone());
        match (
            goal.before.contains_key(&name),
            goal.after.contains_key(&name),
        ) {
            (false, true) => MemberState::Joining,
            (_, false) => MemberState::Leaving,
            (true, true) => MemberState::Member,
        }
    }

    /// The weight of `shard` after the resize under way; of one that leaves, its weight before.
    pub fn weight(&self, shard: &ShardId) -> u32 {
        let name = ShardName(shard.clone());
        let goal = self.goal.as_ref();
        let named = goal.and_then(|goal| goal.after.get(&name).or_else(|| goal.before.get(&name)));
        let in_table = || self.table.membership().weight(shard).map(Weight::get);
        named.copied().or_else(in_table).unwrap_or_default()
    }

    /// The part that the weight of `shard` is of all weights, after the resize under way: 0 to 1.
    pub fn fair_share(&self, shard: &ShardId) -> f64 {
        let due = |id: &ShardId| match self.member_state(id) {
            MemberState::Leaving => 0,
            MemberState::Member | MemberState::Joining => self.weight(id),
        };
        let ids = self.shards.keys().map(|name| &name.0);
        f64::from(due(shard)) / f64::from(ids.map(due).sum::<u32>().max(1))
    }
}
