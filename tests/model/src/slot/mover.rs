//! The mover's steps: seal, import, list, open, shut, finish.

use super::{
    Action, Event, Rule, SlotModel, Token, World,
    state::{Mode, Slot},
    topology::{Known, Migration},
};

/// A step of a move, by any mover that knows enough.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Step {
    /// A grants nothing more.
    Seal,
    /// B takes holders over, and grants by proof.
    Import,
    /// A is asked for the keys still held.
    Scan,
    /// B is told that A holds nothing.
    ListFree,
    /// B is told that A holds the key.
    ListHeld,
    /// A is asked whether it holds nothing.
    Empty,
    /// B grants.
    Open,
    /// A is told so.
    Shut,
    /// The topology is.
    Finish,
}

/// Steps of the guard.
pub(super) const ARMED: u8 = 0;
pub(super) const BEGUN: u8 = 1;
pub(super) const DONE: u8 = 3;

impl SlotModel {
    /// A is sealed, and came back since; the key is proven free, and B grants it.
    pub(super) fn begin_amid_a_move(&self, world: &mut World) {
        self.plan(world);
        self.step(world, 0, Step::Seal);
        self.step(world, 0, Step::Import);
        for (shard, slot) in world
            .shards
            .iter_mut()
            .filter_map(|shard| shard.slot.as_mut())
            .enumerate()
        {
            slot.grace = if shard == 0 { self.config.lease } else { 0 };
            slot.proven = shard == 1;
        }
    }

    /// What some mover may do for any of the moves that ever were.
    pub(super) fn enabled_steps(&self, world: &World, actions: &mut Vec<Action>) {
        for (migration, Migration { known, .. }) in (0..).zip(&world.topology.migrations) {
            let sealed = known.sealed.is_some();
            let may_open = known.empty || self.breaks(Rule::OpenAfterEmpty);
            let lists = self.config.lists;
            let steps = [
                (true, Step::Seal),
                (sealed, Step::Import),
                (lists, Step::Scan),
                (sealed && known.free, Step::ListFree),
                (sealed && known.held, Step::ListHeld),
                (true, Step::Empty),
                (sealed && may_open, Step::Open),
                (known.opened, Step::Shut),
                (known.opened && known.shut, Step::Finish),
            ];
            let steps = steps.into_iter().filter(|(enabled, _)| *enabled);
            actions.extend(steps.map(|(_, step)| Action::Step { migration, step }));
        }
    }

    /// It is taken, if the shard is armed and nothing newer was done to its slot.
    pub(super) fn step(&self, world: &mut World, migration: u8, step: Step) {
        let index = usize::from(migration);
        let migration = world.topology.migrations[index];
        let mut known = migration.known;
        match step {
            Step::Seal => self.seal(world, &migration, &mut known),
            Step::Import => self.import(world, &migration),
            Step::Scan => self.scan(world, &migration, &mut known),
            Step::ListFree => self.list(world, &migration, false),
            Step::ListHeld => self.list(world, &migration, true),
            Step::Empty => known.empty |= self.is_empty(world, &migration),
            Step::Open => known.opened |= self.open(world, &migration),
            Step::Shut => {
                known.shut |=
                    (self.change(world, migration.from, Mode::Shut, migration.epoch)).is_some();
            }
            Step::Finish => self.finish(world, index),
        }
        world.topology.migrations[index].known = known;
    }

    fn seal(&self, world: &mut World, migration: &Migration, known: &mut Known) {
        let sealed = Mode::Sealed(migration.to);
        if let Some(slot) = self.change(world, migration.from, sealed, migration.epoch) {
            // Whichever mover goes on may have had the first answer, which is the least.
            known.sealed.get_or_insert(slot.token);
        }
    }

    fn import(&self, world: &mut World, migration: &Migration) {
        let Some(slot) = self.change(world, migration.to, Mode::Import, migration.epoch) else {
            return;
        };
        slot.raise(Token::none_of(migration.epoch));
        if self.holds(Rule::ImportRaisesTokens) {
            slot.raise_above_seal(migration);
        }
        if self.breaks(Rule::ImportKeepsGrace) {
            slot.grace = 0;
        }
    }

    /// Requests to A are answered while it is sealed by this move, and past its grace.
    fn scan(&self, world: &mut World, migration: &Migration, known: &mut Known) {
        let Some(slot) = self.reach(world, migration.from) else {
            return;
        };
        let sealed = matches!(slot.mode, Mode::Sealed(_)) && slot.guard.0 == migration.epoch;
        let past_grace = slot.grace == 0 || self.breaks(Rule::ListAfterGrace);
        if (sealed && past_grace) || self.breaks(Rule::ListAfterTheSeal) {
            let held = self.live_record(world, migration.from, &slot).is_some();
            known.held |= held;
            known.free |= !held;
        }
    }

    fn list(&self, world: &mut World, migration: &Migration, held: bool) {
        let waits =
            |slot: &&mut Slot| slot.mode == Mode::Import && slot.guard == (migration.epoch, BEGUN);
        if let Some(slot) = world.shard(migration.to).slot.as_mut().filter(waits) {
            slot.list = Some(held);
        }
    }

    fn is_empty(&self, world: &World, migration: &Migration) -> bool {
        let Some(slot) = self.reach(world, migration.from) else {
            return false;
        };
        let past_grace = slot.grace == 0 || self.breaks(Rule::NotEmptyInGrace);
        let nothing_left = match slot.mode {
            Mode::Shut => true,
            Mode::Sealed(_) => {
                past_grace && self.live_record(world, migration.from, &slot).is_none()
            }
            _ => false,
        };
        nothing_left && slot.guard.0 == migration.epoch
    }

    fn open(&self, world: &mut World, migration: &Migration) -> bool {
        let ends_grace = self.breaks(Rule::OpenKeepsGrace);
        let Some(slot) = self.change(world, migration.to, Mode::Open, migration.epoch) else {
            return false;
        };
        slot.raise(Token::none_of(migration.epoch));
        slot.raise_above_seal(migration);
        if ends_grace {
            slot.grace = 0;
        }
        true
    }

    fn finish(&self, world: &mut World, index: usize) {
        let topology = &mut world.topology;
        if topology.under_way != Some(index) {
            return;
        }
        let migration = topology.migrations[index];
        topology.under_way = None;
        topology.owner = migration.to;
        topology.owner_epoch = migration.epoch;
        let mut guards = world.processes.iter().filter_map(|process| process.guard);
        if guards.any(|guard| guard.shard == migration.to && guard.token.epoch < migration.epoch) {
            world.ledger.happened = Some(if topology.planned > 1 {
                Event::FinishedAgainUnderHolder
            } else if index > 0 {
                Event::TakenBackUnderHolder
            } else {
                Event::FinishedUnderHolder
            });
        }
    }

    /// The slot as a mover finds it.
    fn reach(&self, world: &World, shard: u8) -> Option<Slot> {
        if world.topology.is_removed(shard) {
            return None;
        }
        let unarmed = || {
            let makes = self.breaks(Rule::StepsNeedAnArmedShard);
            makes.then(|| Slot::new(Mode::Shut, (0, 0), 0))
        };
        world.shards[usize::from(shard)].slot.or_else(unarmed)
    }

    /// Sets the mode, if (epoch, step) is above the slot's, or equal and it is there already. The
    /// slot, if it is so now.
    fn change<'world>(
        &self,
        world: &'world mut World,
        shard: u8,
        mode: Mode,
        epoch: u8,
    ) -> Option<&'world mut Slot> {
        let mut slot = self.reach(world, shard)?;
        let guard = match mode {
            Mode::Sealed(_) | Mode::Import => (epoch, BEGUN),
            Mode::Open | Mode::Shut => (epoch, DONE),
        };
        if guard > slot.guard || self.breaks(Rule::StepsAreGuarded) {
            slot.mode = mode;
            slot.guard = guard;
            slot.list = None;
            slot.proven = false;
        } else if guard != slot.guard || mode != slot.mode {
            return None;
        }
        Some(world.shard(shard).slot.insert(slot))
    }
}

impl Slot {
    /// Above all that A granted before it was sealed.
    fn raise_above_seal(&mut self, migration: &Migration) {
        if let Some(token) = migration.known.sealed {
            self.raise(token);
        }
    }
}
