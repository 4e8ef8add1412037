//! What else is done in a record's name: arming its members, and copying it to them.

use super::{
    Action, Event, Rule, TopologyModel, World,
    record::{Member, Migration, Record},
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
        let Member { life, epoch } = record.member(shard);
        let reuses = state.slot.is_none() && self.breaks(Rule::EpochIsUsedOnce);
        if life == state.life && (epoch.number > state.used || reuses) {
            actions.push(Action::Arm {
                record: index,
                shard,
            });
        }
    }

    /// A life without state, or armed with a lower epoch, gets its slot, tokens and grace.
    pub(super) fn arm(&self, world: &mut World, record: usize, index: u8) {
        let record = world.read[record];
        let heeds = self.holds(Rule::ArmsHeedTheFence);
        let copies = self.holds(Rule::ArmsLeaveACopy);
        let anew_waits = self.holds(Rule::AnewHasItsGrace);
        if !self.is_ahead(world, &record) {
            return;
        }
        let shard = world.shard_mut(index);
        if record.incarnation < shard.fence && heeds {
            return;
        }
        let later = shard.slot.is_some()
            && shard
                .copy
                .is_some_and(|copy| copy.version() > record.version());
        if later {
            return;
        }
        shard.fence = shard.fence.max(record.incarnation);
        if copies {
            shard.keep_copy(&record);
        }
        let new = armed(&record, index);
        let is_anew = shard.slot.is_some();
        let waits = !is_anew || anew_waits;
        let last = shard.slot.map_or(new.token, |slot| slot.token);
        shard.slot = Some(Slot {
            grace: if waits { self.config.lease } else { 0 },
            token: new.token.max(last),
            ..new
        });
        shard.used = shard.used.max(new.armed);
        let is_afresh = !is_anew && shard.life == 1;
        if is_anew {
            world.ledger.happened = Some(Event::ArmedAnew);
        } else if is_afresh {
            world.ledger.happened = Some(Event::ArmedAfresh);
        }
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
    let (mode, guard) = match record.migration {
        Some(Migration { from, to, epoch }) if from == shard => {
            (Mode::Sealed(to), (epoch.number, 1))
        }
        Some(Migration { from, to, epoch }) if to == shard => {
            (Mode::Import(from), (epoch.number, 0))
        }
        _ if record.owner == shard => (Mode::Open, (last, 3)),
        _ => (Mode::Shut, (last, 3)),
    };
    Slot::new(mode, guard, (record.member(shard).epoch.number, last))
}
