//! The replicas of a slot while some of them move: a minority at a time, and no two in one zone. Pure.

use ringfence_ring::{Membership, Move, Replicas, ShardId, Slot};

use super::Topology;

/// The shards that have each slot now, or come to have it.
pub(super) struct Ranks<'a> {
    record: &'a Topology,
    /// The next shard of each migrating slot.
    next: Vec<Option<ShardId>>,
    /// Slots that migrate or wait to be opened.
    busy: Vec<bool>,
}

impl<'a> Ranks<'a> {
    pub(super) fn of(record: &'a Topology) -> Self {
        let mut next = vec![None; record.table.all_slots().len()];
        for migration in &record.migrations {
            for slot in &migration.slots {
                next[slot.index()] = Some(migration.to.0.clone());
            }
        }
        let mut busy: Vec<_> = next.iter().map(Option::is_some).collect();
        for slot in record.openings.iter().flat_map(|opening| &opening.slots) {
            busy[slot.index()] = true;
        }
        Self { record, next, busy }
    }

    /// Whether `step` may begin. Counts it as begun from now on: any of the steps that may begin may be
    /// left out.
    pub(super) fn begin(&mut self, step: &Move) -> bool {
        let slot = step.slot;
        let may_begin = !self.busy[slot.index()] && self.leaves_majorities(slot);
        if !may_begin || !self.has_room(slot, &step.to) {
            return false;
        }
        self.busy[slot.index()] = true;
        self.next[slot.index()] = Some(step.to.clone());
        true
    }

    /// Whether a majority of the ranks stays where it is while `slot` moves, too, for each number of replicas: a key with
    /// fewer than the most has the first ranks.
    fn leaves_majorities(&self, slot: Slot) -> bool {
        let ranks: Vec<_> = self.ranks(slot).collect();
        let moves = |rank: &&Slot| **rank == slot || self.busy[rank.index()];
        let numbers = (1..=ranks.len()).step_by(2);
        numbers.map(|number| &ranks[..number]).all(|ranks| {
            let moving = ranks.iter().filter(moves).count();
            moving <= (ranks.len() / 2).max(1)
        })
    }

    /// Whether no other rank of `slot` is at `shard` or in its zone, or comes there, or leaves it.
    pub(super) fn has_room(&self, slot: Slot, shard: &ShardId) -> bool {
        let members = self.record.table.membership();
        let zone = members.zone(shard);
        let apart =
            |other: &ShardId| other != shard && (zone.is_none() || members.zone(other) != zone);
        let mut others = self.ranks(slot).filter(|rank| *rank != slot);
        others.all(|rank| {
            let next = self.next[rank.index()].as_ref();
            apart(self.record.table.owner(rank)) && next.is_none_or(apart)
        })
    }

    /// The shard among `members` with room for `slot` that has the fewest slots. Zones and shards
    /// suffice if no other rank of it is migrating.
    pub(super) fn heir<'m>(&self, slot: Slot, members: &'m Membership) -> Option<&'m ShardId> {
        let shards = members.shards().iter();
        shards
            .filter(|id| self.has_room(slot, id))
            .min_by_key(|id| self.record.table.quota(id))
    }

    fn replicas(&self) -> Replicas {
        self.record.table.membership().replicas()
    }

    fn ranks(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        self.record.table.slots().replicas(slot, self.replicas())
    }
}
