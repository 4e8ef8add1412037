//! The mover's steps at the shards. What it does with locks is another model's:
//! [`slot`](crate::slot).

use super::{
    Action, Rule, TopologyModel, World,
    record::{Migration, Mover, Record},
    state::{Mode, Slot},
};
use crate::words::Token;

/// A step of a move, by any mover that knows enough.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Step {
    /// The former shard grants nothing more.
    Seal,
    /// The next one takes holders over, and grants by proof.
    Import,
    /// The former one is asked whether it holds nothing.
    Empty,
    /// The next one grants.
    Open,
    /// The former one is told so.
    Shut,
}

impl Step {
    /// All, in their order.
    pub(super) const EVERY: [Self; 5] = [
        Self::Seal,
        Self::Import,
        Self::Empty,
        Self::Open,
        Self::Shut,
    ];

    fn is_at_the_former(self) -> bool {
        matches!(self, Self::Seal | Self::Empty | Self::Shut)
    }
}

impl TopologyModel {
    pub(super) fn enabled_steps(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, mover) in world.movers.iter().enumerate() {
            let steps = Step::EVERY.into_iter().filter(|step| mover.may(*step));
            actions.extend(steps.map(|step| Action::Step { mover: index, step }));
        }
    }

    /// It reaches its shard.
    pub(super) fn step(&self, world: &mut World, index: usize, step: Step) {
        let mut mover = world.movers[index];
        let Migration { from, to, .. } = mover.migration;
        let at = if step.is_at_the_former() { from } else { to };
        let as_named = self.is_as_named(world, at) || self.breaks(Rule::StepsGoToTheArmed);
        if !world.shard(at).up || !as_named || !self.is_ahead(world, &mover.record) {
            return;
        }
        if step == Step::Empty {
            mover.empty |= is_empty(world, &mover.migration);
        } else if let Some(slot) = self.change(world, at, step, &mover) {
            mover.learns(step, slot);
            if step == Step::Open {
                let records = self.in_force(world);
                let carried = mover.record.incarnation;
                let mut going = records.filter(|record| {
                    record.migration == Some(mover.migration) && record.incarnation == carried
                });
                mover.opened_at = going.next().map(|record| record.version());
            }
        }
        world.movers[index] = mover;
    }

    /// Changes the slot's mode, if the record is not below the fence, and the step not below what was
    /// done last. The slot, if it is so now.
    fn change(&self, world: &mut World, at: u8, step: Step, mover: &Mover) -> Option<Slot> {
        let Migration { from, to, epoch } = mover.migration;
        let (mode, guard) = match step {
            Step::Seal => (Mode::Sealed(to), (epoch.number, 1)),
            Step::Import => (Mode::Import(from), (epoch.number, 1)),
            Step::Open => (Mode::Open, (epoch.number, 3)),
            Step::Shut | Step::Empty => (Mode::Shut, (epoch.number, 3)),
        };
        let heeds = self.holds(Rule::StepsHeedTheFence);
        let copies = self.holds(Rule::StepsLeaveACopy);
        let shard = world.shard_mut(at);
        if mover.record.incarnation < shard.fence && heeds {
            return None;
        }
        shard.fence = shard.fence.max(mover.record.incarnation);
        if copies {
            shard.keep_copy(&mover.record);
        }
        let mut slot = shard.slot?;
        if guard > slot.guard {
            (slot.mode, slot.guard) = (mode, guard);
            world.ledger.takes_effect(epoch);
        } else if guard != slot.guard || mode != slot.mode {
            return None;
        }
        if matches!(step, Step::Import | Step::Open) {
            let sealed = mover.sealed.unwrap_or_default();
            let least = sealed.max(Token::none_of(epoch.number));
            slot.token = slot.token.max(least);
        }
        Some(*world.shard_mut(at).slot.insert(slot))
    }

    /// Whether as many other members have a copy of `record`, or of a newer one, as must before
    /// anything is done in its name.
    pub(super) fn is_ahead(&self, world: &World, record: &Record) -> bool {
        if self.breaks(Rule::CopiedAhead) {
            return true;
        }
        let others = world.each().filter(|(shard, _)| *shard != record.home);
        let copies = others.filter_map(|(_, shard)| shard.copy);
        let new = copies.filter(|copy| copy.version() >= record.version());
        new.count() >= usize::from(self.config.copies)
    }
}

impl Mover {
    /// Whether some mover can know that the step is to be taken.
    pub(super) fn may(&self, step: Step) -> bool {
        match step {
            Step::Seal => true,
            Step::Import => self.sealed.is_some(),
            Step::Empty => self.sealed.is_some() && !self.empty,
            Step::Open => self.imported && self.empty,
            Step::Shut => self.opened,
        }
    }

    fn learns(&mut self, step: Step, slot: Slot) {
        match step {
            Step::Seal => self.sealed = self.sealed.max(Some(slot.token)),
            Step::Import => self.imported = true,
            Step::Open => self.opened = true,
            Step::Shut => self.shut = true,
            Step::Empty => {}
        }
    }
}

fn is_empty(world: &World, migration: &Migration) -> bool {
    let shard = world.shard(migration.from);
    let Some(slot) = shard
        .slot
        .filter(|slot| slot.guard.0 == migration.epoch.number)
    else {
        return false;
    };
    match slot.mode {
        Mode::Shut => true,
        Mode::Sealed(_) => slot.grace == 0 && shard.lock.is_none(),
        Mode::Open | Mode::Import(_) => false,
    }
}
