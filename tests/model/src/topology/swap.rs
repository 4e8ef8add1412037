//! Changes of the record, each one swap at its home.

use super::{
    Action, Event, Rule, TopologyModel, World,
    record::{Incarnation, Meaning, Member, Migration, Mover, Record},
};

impl TopologyModel {
    /// The record that `home` may go on with, if there is one.
    pub(super) fn usable(&self, world: &World, home: u8) -> Option<Record> {
        let shard = world.shard(home);
        let record = shard.record.filter(|record| record.home == home)?;
        let current = record.home_life == shard.life || self.breaks(Rule::UsedInItsLife);
        (shard.up && current && record.incarnation >= shard.fence).then_some(record)
    }

    /// Those in force: one, or none while it has to be recovered.
    pub(super) fn in_force(&self, world: &World) -> impl Iterator<Item = Record> {
        (0..self.config.shards).filter_map(|home| self.usable(world, home))
    }

    pub(super) fn enabled_swaps(&self, world: &World, actions: &mut Vec<Action>) {
        for Record {
            home, migration, ..
        } in self.in_force(world)
        {
            for shard in 0..self.config.shards {
                if world.left.moves > 0 && migration.is_none() {
                    actions.push(Action::Plan { home, to: shard });
                }
                actions.push(Action::RecordLife { home, shard });
                if world.left.rearms > 0 {
                    actions.push(Action::Distrust { home, shard });
                }
            }
            if migration.is_some() {
                actions.push(Action::Finish { home });
            }
        }
    }

    /// The slot sets out.
    pub(super) fn plan(&self, world: &mut World, home: u8, to: u8) {
        let Some(mut record) = self.usable(world, home) else {
            return;
        };
        let from = record.owner;
        if record.migration.is_some() || from == to {
            return;
        }
        let number = self.fresh_epoch(world, record.last_epoch);
        let epoch = record.allot(number, Meaning::Move { from, to });
        record.migration = Some(Migration { from, to, epoch });
        world.left.moves -= 1;
        self.swap(world, record);
    }

    /// A shard's new life is noted, with a fresh epoch.
    pub(super) fn record_life(&self, world: &mut World, home: u8, index: u8) {
        let shard = world.shard(index);
        let life = shard.life;
        let Some(record) = self.usable(world, home) else {
            return;
        };
        let named = record.member(index);
        let is_armed = shard.slot.is_some();
        let goes_on = is_armed && self.breaks(Rule::ReplacedIsArmedAnew);
        let flushed =
            !is_armed && named.epoch.number <= shard.used && self.holds(Rule::EpochIsUsedOnce);
        if !shard.up || goes_on || (named.life == life && !flushed) {
            return;
        }
        self.name(world, record, index, life);
    }

    /// A shard that is armed is to be armed anew: its clock stepped.
    pub(super) fn distrust(&self, world: &mut World, home: u8, index: u8) {
        let Some(record) = self.usable(world, home) else {
            return;
        };
        let life = record.member(index).life;
        let shard = world.shard(index);
        if shard.slot.is_none() || shard.life != life {
            return;
        }
        world.left.rearms -= 1;
        self.name(world, record, index, life);
    }

    /// The record names that life, with a fresh epoch.
    fn name(&self, world: &mut World, mut record: Record, index: u8, life: u8) {
        let number = self.fresh_epoch(world, record.last_epoch);
        let epoch = record.allot(number, Meaning::Life { shard: index, life });
        record.members[usize::from(index)] = Member { life, epoch };
        self.swap(world, record);
    }

    /// The slot has arrived: by a mover that read this version before it opened the slot.
    pub(super) fn finish(&self, world: &mut World, home: u8) {
        let Some(mut record) = self.usable(world, home) else {
            return;
        };
        let Some(migration) = record.migration else {
            return;
        };
        let arrived = |mover: &&Mover| {
            mover.migration == migration
                && mover.record.incarnation == record.incarnation
                && mover.opened_at == Some(record.version())
                && mover.shut
        };
        if !world.movers.iter().any(|mover| arrived(&mover)) {
            return;
        }
        record.migration = None;
        record.owner = migration.to;
        self.swap(world, record);
        if record.incarnation > Incarnation::default() {
            world.ledger.happened = Some(Event::FinishedAfter);
        }
    }

    /// An epoch that this record has not allotted; by a clock, that no record ever has.
    pub(super) fn fresh_epoch(&self, world: &World, last: u8) -> u8 {
        last.max(world.ledger.last_epoch) + 1
    }

    /// The next version is in force, and its home has seen its incarnation.
    fn swap(&self, world: &mut World, mut record: Record) {
        record.number += 1;
        let home = world.shard_mut(record.home);
        home.fence = home.fence.max(record.incarnation);
        self.put_in_force(world, record);
    }

    /// `record` is written at its home.
    pub(super) fn put_in_force(&self, world: &mut World, mut record: Record) {
        let remembers = world.left.home_restarts > 0;
        let home = world.shard_mut(record.home);
        if let Some(former) = home.record.filter(|_| remembers) {
            home.earlier.insert(0, former);
            home.earlier.truncate(2);
        }
        if self.breaks(Rule::UsedInItsLife) {
            record.home_life = home.life;
        }
        home.record = Some(record);
        if self.config.clock {
            let ledger = &mut world.ledger;
            ledger.last_epoch = ledger.last_epoch.max(record.last_epoch);
            ledger.last_incarnation = ledger.last_incarnation.max(record.incarnation.number);
        }
        world.reads(record);
    }
}

impl World {
    /// A process reads `record`, and may use it at any later time.
    pub(super) fn reads(&mut self, record: Record) {
        if let Err(place) = self.read.binary_search(&record) {
            self.read.insert(place, record);
        }
        let Some(migration) = record.migration else {
            return;
        };
        let known = |mover: &Mover| {
            mover.migration == migration && mover.record.incarnation == record.incarnation
        };
        if !self.movers.iter().any(known) {
            self.movers.push(Mover::new(migration, record));
            self.movers.sort_unstable();
        }
    }
}
