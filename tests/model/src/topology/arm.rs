//! What else is done in a record's name: arming its members, and copying it to them.

use super::{
    Action, Rule, TopologyModel, World,
    record::{Motion, Record},
    state::{Mode, Slot},
};

impl TopologyModel {
    pub(super) fn enabled_arms(&self, world: &World, actions: &mut Vec<Action>) {
        for record in 0..world.read.len() {
            for shard in 0..self.config.shards {
                self.enabled_by(world, record, shard, actions);
            }
        }
    }

    /// What may be done for a record at one of its members; to arm it, in the life that it names.
    pub(super) fn enabled_by(
        &self,
        world: &World,
        index: usize,
        shard: u8,
        actions: &mut Vec<Action>,
    ) {
        let record = world.read[index];
        let state = world.shard(shard);
        if !state.up {
            return;
        }
        if self.config.copies > 0 && shard != record.home {
            actions.push(Action::Copy {
                record: index,
                shard,
            });
        }
        let its_life = record.member(shard).life == state.life;
        if its_life && state.slot.is_none() {
            actions.push(Action::Arm {
                record: index,
                shard,
            });
        }
    }

    /// A life without state gets its slot, tokens and grace.
    pub(super) fn arm(&self, world: &mut World, record: usize, index: u8) {
        let record = world.read[record];
        let heeds = self.holds(Rule::ArmsHeedTheFence);
        let copies = self.holds(Rule::ArmsLeaveACopy);
        if !self.is_ahead(world, &record) {
            return;
        }
        let shard = world.shard_mut(index);
        if record.incarnation < shard.fence && heeds {
            return;
        }
        shard.fence = shard.fence.max(record.incarnation);
        if copies {
            shard.keep_copy(&record);
        }
        shard.slot = Some(Slot {
            grace: self.config.lease,
            ..armed(&record, index)
        });
        world.ledger.takes_effect(record.member(index).epoch);
    }

    /// A member keeps a copy.
    pub(super) fn copy(&self, world: &mut World, record: usize, index: u8) {
        let record = world.read[record];
        let shard = world.shard_mut(index);
        if record.incarnation >= shard.fence {
            shard.fence = record.incarnation;
            shard.keep_copy(&record);
        }
    }
}

/// What `record` arms `shard` with.
fn armed(record: &Record, shard: u8) -> Slot {
    let last = record.last_epoch;
    let (mode, guard) = match record.motion {
        Some(Motion { from, to, epoch }) if from == shard => (Mode::Sealed(to), (epoch.number, 1)),
        Some(Motion { from, to, epoch }) if to == shard => (Mode::Import(from), (epoch.number, 0)),
        _ if record.owner == shard => (Mode::Open, (last, 3)),
        _ => (Mode::Shut, (last, 3)),
    };
    Slot::new(mode, guard, last)
}
