//! The topology's record: the slot's owner, and the plan. Every change is one swap, and an
//! epoch is never allotted twice.

use super::{
    Action, Rule, SlotModel, Token, World,
    state::{Mode, Slot},
};

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) owner: u8,
    /// Of the move that brought the slot to its owner.
    pub(super) owner_epoch: u8,
    /// The last one allotted.
    pub(super) epoch: u8,
    pub(super) members: Vec<Member>,
    /// Every move there ever was: a mover may have slept since.
    pub(super) migrations: Vec<Migration>,
    /// The one that is under way.
    pub(super) under_way: Option<usize>,
    /// How many moves of the configuration's plan were begun.
    pub(super) planned: usize,
    pub(super) removed: Option<Removed>,
}

/// A shard that was declared gone for good.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Removed {
    pub(super) shard: u8,
    /// The rest of the time in which a process may go by a view of before that.
    pub(super) views: u8,
    /// The epoch at which the other one takes the slot.
    pub(super) epoch: Option<u8>,
}

/// What the record says of a shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) life: u8,
    /// With which that life is armed.
    pub(super) epoch: u8,
}

/// A move of the slot.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Migration {
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) epoch: u8,
    pub(super) known: Known,
}

/// What has been answered to some mover.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Known {
    /// A is sealed, and had granted this last.
    pub(super) sealed: Option<Token>,
    /// A's list does not name the key.
    pub(super) free: bool,
    /// A's list names it.
    pub(super) held: bool,
    pub(super) empty: bool,
    pub(super) opened: bool,
    pub(super) shut: bool,
}

impl Topology {
    pub(super) fn new(shards: u8) -> Self {
        Self {
            owner: 0,
            owner_epoch: 1,
            epoch: 1,
            members: vec![Member { life: 0, epoch: 1 }; usize::from(shards)],
            migrations: Vec::new(),
            under_way: None,
            planned: 0,
            removed: None,
        }
    }

    pub(super) fn fresh_epoch(&mut self) -> u8 {
        self.epoch += 1;
        self.epoch
    }

    pub(super) fn migration(&self) -> Option<&Migration> {
        self.under_way.map(|migration| &self.migrations[migration])
    }

    /// Whether `shard` is gone for good, by the record.
    pub(super) fn is_removed(&self, shard: u8) -> bool {
        self.removed.is_some_and(|removed| removed.shard == shard)
    }

    fn begin(&mut self, from: u8, to: u8) {
        let epoch = self.fresh_epoch();
        self.under_way = Some(self.migrations.len());
        self.migrations.push(Migration {
            from,
            to,
            epoch,
            known: Known::default(),
        });
    }
}

impl SlotModel {
    /// What may be planned.
    pub(super) fn enabled_plans(&self, world: &World, actions: &mut Vec<Action>) {
        let topology = &world.topology;
        let busy = topology.under_way.is_some();
        let more = topology.planned < self.config.plan.len() && topology.removed.is_none();
        if more && (!busy || self.breaks(Rule::PlannedOnceAtATime)) {
            actions.push(Action::Plan);
        }
        if busy && world.left.aborts > 0 {
            actions.push(Action::Abort);
        }
    }

    /// The next move of the configuration's plan.
    pub(super) fn plan(&self, world: &mut World) {
        let topology = &mut world.topology;
        let (from, to) = self.config.plan[topology.planned];
        topology.planned += 1;
        topology.begin(from, to);
    }

    /// The move under way is turned round.
    pub(super) fn abort(&self, world: &mut World) {
        let topology = &mut world.topology;
        let Some(Migration { from, to, .. }) = topology.migration().copied() else {
            return;
        };
        if self.holds(Rule::AbortIsAMoveBack) {
            topology.begin(to, from);
        } else if !self.reopen(world, from) {
            return;
        }
        world.left.aborts -= 1;
    }

    fn reopen(&self, world: &mut World, from: u8) -> bool {
        let sealed = |slot: &&mut Slot| matches!(slot.mode, Mode::Sealed(_));
        let Some(slot) = world.shard(from).slot.as_mut().filter(sealed) else {
            return false;
        };
        slot.mode = Mode::Open;
        slot.guard.1 = 3;
        world.topology.under_way = None;
        true
    }

    /// A shard's counter is at its end, or an import of another slot needs it: a fresh epoch for all
    /// that it grants.
    pub(super) fn raise(&self, world: &mut World, shard: u8) {
        world.left.raises -= 1;
        let epoch = world.topology.fresh_epoch();
        if let Some(slot) = &mut world.shard(shard).slot {
            slot.raise(Token::none_of(epoch));
        }
    }
}
