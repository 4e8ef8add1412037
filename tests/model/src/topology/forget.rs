//! What can make no difference any more is forgotten, so that states that differ in nothing else
//! are one.

use super::{
    Rule, TopologyModel, World,
    locks::names,
    record::{Member, Mover, Record},
};

impl TopologyModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        if world.left.home_restarts == 0 {
            for shard in &mut world.shards {
                shard.earlier.clear();
            }
        }
        self.forget_records(world);
        self.forget_movers(world);
        // Every record in force can be read now.
        let in_force: Vec<_> = self.in_force(world).collect();
        for record in in_force {
            world.reads(record);
            if self.lives_may_go_on() {
                note_named(world, &record);
            }
        }
    }

    /// A record that was read can arm a shard that is unarmed in a life that it names; the newest,
    /// for recovering, and for copies.
    fn forget_records(&self, world: &mut World) {
        let mut read = std::mem::take(&mut world.read);
        let newest = read.iter().map(Record::version).max();
        let left = &world.left;
        let may_recover = left.home_restarts > 0
            || left.losses > 0
            || left.deaths > 0
            || world.recoveries.iter().any(Option::is_some)
            || self.in_force(world).next().is_none();
        let keeps_newest = may_recover || self.config.copies > 0;
        let arms = |record: &Record| {
            let reuses = self.breaks(Rule::EpochIsUsedOnce);
            world.each().any(|(index, shard)| {
                let Member { life, epoch } = record.member(index);
                let former = shard.former.as_ref().filter(|_| world.left.retargets > 0);
                let lives = life == shard.life || former.is_some_and(|former| life == former.life);
                lives && (epoch.number > shard.used || reuses)
            })
        };
        read.retain(|record| arms(record) || (keeps_newest && Some(record.version()) == newest));
        world.read = read;
    }

    /// A move that no record has is over where both shards refuse its steps: for their fence, or for
    /// what was done after it.
    fn forget_movers(&self, world: &mut World) {
        let mut movers = std::mem::take(&mut world.movers);
        let heeds = self.holds(Rule::StepsHeedTheFence);
        movers.retain(|mover| {
            let fenced = heeds && is_fenced(world, mover);
            !((fenced && !is_recorded(world, mover)) || is_past(world, mover))
        });
        world.movers = movers;
    }
}

/// Notes the shards that `record`, which is in force, names as they are.
fn note_named(world: &mut World, record: &Record) {
    for index in 0..world.shards.len() as u8 {
        if names(record, world, index) {
            world.shard_mut(index).named_until = record.version();
        }
    }
}

fn is_recorded(world: &World, mover: &Mover) -> bool {
    let mut records = world.shards.iter().filter_map(|shard| shard.record);
    records.any(|record| {
        record.migration == Some(mover.migration) && record.incarnation == mover.record.incarnation
    })
}

fn is_fenced(world: &World, mover: &Mover) -> bool {
    let shards = [mover.migration.from, mover.migration.to];
    let mut fences = shards.iter().map(|shard| world.shard(*shard).fence);
    fences.all(|fence| mover.record.incarnation < fence)
}

/// Whether both shards are beyond the move, and no record that has it can come back.
fn is_past(world: &World, mover: &Mover) -> bool {
    let records = |record: &Record| record.migration == Some(mover.migration);
    let mut shards = world.shards.iter();
    let recorded = shards.any(|shard| shard.record.iter().chain(&shard.earlier).any(records));
    let mut both = [mover.migration.from, mover.migration.to].into_iter();
    let passed = both.all(|shard| {
        let slot = world.shard(shard).slot;
        slot.is_some_and(|slot| slot.guard.0 > mover.migration.epoch.number)
    });
    passed && !recorded
}
