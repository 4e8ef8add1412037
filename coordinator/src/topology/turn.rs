//! A round of a resize: the work done since the record was read, and the work that may begin. Pure.

use std::{collections::BTreeMap, time::Duration};

use hashbrown::HashSet;
use ringfence_ring::{Move, Plan, RingError, ShardId, Slot, Table};

use super::{
    MigrationId, ShardName, Topology, TopologyError, migration::moves_of, ranks::Ranks,
    resize::membership,
};
use crate::ids::{Epoch, MapVersion};

/// The work that a mover has done since it read a record, and the work that it may begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Moves whose next shard has the list.
    pub listed: Vec<MigrationId>,
    /// Slots that are open at their next shard and shut at the former one, by the epoch of their
    /// move.
    pub finished: Vec<(Epoch, Vec<Slot>)>,
    /// The maximum number of migrating slots. New moves are planned once half of them may begin:
    /// each batch costs the shards a scan.
    pub slots_in_flight: usize,
}

impl Topology {
    /// The record after a round, by one swap for all of it; `None` if nothing changes.
    ///
    /// Results in `round` about moves that are not in this record are ignored. The caller's swap
    /// expects the version that was read *before* the slots were opened.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoEpochs`]; [`TopologyError::Malformed`]: the record contradicts itself.
    pub fn turn(&self, round: &Round, unix: Duration) -> Result<Option<Self>, TopologyError> {
        let mut next = self.clone();
        next.note(round).map_err(malformed)?;
        if let Some(plan) = next.plan().map_err(malformed)? {
            next.set_out(&plan, round.slots_in_flight, unix)?;
            if next.migrations.is_empty() {
                next.arrive(plan);
            }
        }
        if next == *self {
            return Ok(None);
        }
        next.version += 1;
        next.mark_changed(self);
        Ok(Some(next))
    }

    /// The moves that remain of the resize once those under way are done; `None` if there is no
    /// resize.
    pub(super) fn plan(&self) -> Result<Option<Plan>, RingError> {
        let Some(goal) = &self.goal else {
            return Ok(None);
        };
        let mut table = self.table.clone();
        for migration in &self.migrations {
            give(&mut table, &migration.slots, &migration.to)?;
        }
        let target = membership(&table, &goal.after)?;
        table.plan(&target).map(Some)
    }

    /// Records the listed and finished moves.
    fn note(&mut self, round: &Round) -> Result<(), RingError> {
        for migration in &mut self.migrations {
            migration.listed |= round.listed.contains(&migration.id());
            let done = round.finished.iter();
            let done = done.filter(|(epoch, _)| *epoch == migration.epoch);
            let done: HashSet<Slot> = done.flat_map(|(_, slots)| slots.iter().copied()).collect();
            let slots = std::mem::take(&mut migration.slots);
            let (gone, left): (Vec<_>, _) = slots.into_iter().partition(|slot| done.contains(slot));
            migration.slots = left;
            give(&mut self.table, &gone, &migration.to)?;
        }
        self.migrations
            .retain(|migration| !migration.slots.is_empty());
        Ok(())
    }

    /// Starts to migrate slots, if there is room for a batch.
    fn set_out(&mut self, plan: &Plan, max: usize, unix: Duration) -> Result<(), TopologyError> {
        let mut ranks = Ranks::of(self);
        let may_begin = |step: &&Move| ranks.begin(step);
        let moves: Vec<_> = plan.moves().iter().filter(may_begin).collect();
        let under_way: usize = self
            .migrations
            .iter()
            .map(|migration| migration.slots.len())
            .sum();
        let max = max.max(1);
        let room = max.saturating_sub(under_way).min(moves.len());
        if room == 0 || room < moves.len().min(max.div_ceil(2)) {
            return Ok(());
        }
        self.last_epoch = self.next_epoch(unix)?;
        let moves = spread(&moves, room);
        self.migrations.extend(moves_of(self.last_epoch, moves));
        Ok(())
    }

    /// Ends the resize if every slot is where `plan` leads. No slot of the plan is migrating.
    fn arrive(&mut self, plan: Plan) {
        if plan.moves().is_empty() {
            self.table = plan.table().clone();
            let members = self.table.membership();
            self.shards
                .retain(|name, _| members.index_of(&name.0).is_some());
            self.goal = None;
        }
    }

    /// Records this version at every shard whose slots, or migrating slots, differ from those in
    /// `before`.
    pub(super) fn mark_changed(&mut self, before: &Self) {
        let (was, is) = (before.at_rest(), self.at_rest());
        let differ = was.into_iter().zip(is).filter(|(was, is)| was != is);
        let changed: HashSet<ShardId> = differ
            .flat_map(|(was, is)| [was, is])
            .flatten()
            .cloned()
            .collect();
        for (name, entry) in &mut self.shards {
            if changed.contains(&name.0) {
                entry.changed = MapVersion(self.version);
            }
        }
    }

    /// The owner of each slot; `None` for those migrating.
    fn at_rest(&self) -> Vec<Option<&ShardId>> {
        let slots = self.table.all_slots().zip(self.migrating());
        slots
            .map(|(slot, moves)| (!moves).then(|| self.table.owner(slot)))
            .collect()
    }
}

fn give(table: &mut Table, slots: &[Slot], to: &ShardName) -> Result<(), RingError> {
    slots.iter().try_for_each(|&slot| table.give(slot, &to.0))
}

pub(super) fn malformed(error: RingError) -> TopologyError {
    TopologyError::Malformed(format!("topology record: {error}"))
}

/// The first `room` of `moves`, taken from each pair of shards in proportion to its number of
/// moves, so that all pairs finish at the same time.
fn spread(moves: &[&Move], room: usize) -> Vec<(ShardName, ShardName, Vec<Slot>)> {
    let mut pairs: BTreeMap<(&ShardId, &ShardId), Vec<Slot>> = BTreeMap::new();
    for step in moves {
        pairs
            .entry((&step.from, &step.to))
            .or_default()
            .push(step.slot);
    }
    // The nth move of a pair with N moves comes at (n + 1/2) / N of the way.
    let mut order: Vec<(u64, u64, usize)> = Vec::with_capacity(moves.len());
    for (pair, slots) in pairs.values().enumerate() {
        let count = slots.len() as u64;
        order.extend((0..count).map(|nth| (2 * nth + 1, count, pair)));
    }
    order.sort_by(|(n, of, pair), (m, among, other)| (n * among, pair).cmp(&(m * of, other)));
    let mut taken = vec![0; pairs.len()];
    order[..room]
        .iter()
        .for_each(|&(_, _, pair)| taken[pair] += 1);
    let begun = pairs.into_iter().zip(taken).filter(|(_, taken)| *taken > 0);
    begun
        .map(|(((from, to), slots), taken)| {
            (
                ShardName(from.clone()),
                ShardName(to.clone()),
                slots[..taken].to_vec(),
            )
        })
        .collect()
}
