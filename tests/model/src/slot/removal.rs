//! A shard that is gone for good. It cannot be told: so its clients must know by themselves.

use super::{
    Action, Request, Rule, SlotModel, Token, World,
    mover::DONE,
    state::{Mode, Process, Slot},
};

/// The removed shard, and the one that takes its slot.
const GONE: u8 = 0;
const SUCCESSOR: u8 = 1;

impl SlotModel {
    /// How long a look at the topology is good for, where one may be removed.
    pub(super) fn view_lease(&self) -> u8 {
        self.config.view_lease.unwrap_or_default()
    }

    pub(super) fn enabled_removal(&self, world: &World, actions: &mut Vec<Action>) {
        match world.topology.removed {
            None if self.config.view_lease.is_some() => actions.push(Action::DeclareGone),
            Some(_) => actions.push(Action::ForceOpen),
            None => {}
        }
    }

    /// Whether looking makes a difference.
    pub(super) fn may_look(&self, world: &World, process: &Process) -> bool {
        let view = process.view;
        let news = world.topology.removed.is_some() && !view.removed;
        self.config.view_lease.is_some() && (news || view.left < self.view_lease())
    }

    /// The process confirms its view, or has a new one.
    pub(super) fn look(&self, world: &mut World, process: u8) {
        let view = &mut world.processes[usize::from(process)].view;
        view.left = self.view_lease();
        view.removed = world.topology.removed.is_some();
    }

    /// Whether a process's view lets it ask that shard; where none is removed, any picture of the
    /// ring is possible.
    pub(super) fn may_ask(&self, world: &World, process: &Process, shard: u8) -> bool {
        let owner = if process.view.removed {
            SUCCESSOR
        } else {
            GONE
        };
        self.config.view_lease.is_none() || world.topology.under_way.is_some() || shard == owner
    }

    /// The swap that says so. A move under way ends with it.
    pub(super) fn declare_gone(&self, world: &mut World) {
        let topology = &mut world.topology;
        let epoch = topology.fresh_epoch();
        topology.removed = Some(epoch);
        topology.owner = SUCCESSOR;
        topology.under_way = None;
    }

    /// The successor waits until every view has lapsed, and then for holders to come.
    pub(super) fn force_open(&self, world: &mut World) {
        let Some(epoch) = world.topology.removed else {
            return;
        };
        let (view, lease) = (self.view_lease(), self.config.lease);
        let (shut, grace) = if self.breaks(Rule::RemovalWaitsForViews) {
            (0, lease)
        } else if self.breaks(Rule::GraceAfterViews) {
            (view, view)
        } else {
            (view, view + lease)
        };
        let slot = &mut world.shard(SUCCESSOR).slot;
        let guard = (epoch, DONE);
        // A repeat never sets running timers again.
        if let Some(slot) = slot.as_mut().filter(|slot| slot.guard < guard) {
            *slot = Slot {
                token: slot.token.max(Token::none_of(epoch)),
                shut,
                grace,
                ..Slot::new(Mode::Open, guard, epoch)
            };
        }
    }

    /// Whether a process makes nothing of an answer: its view has lapsed, or has no such shard.
    pub(super) fn is_dropped(&self, world: &World, answered: &Request) -> bool {
        let process = &world.processes[usize::from(answered.nonce.process)];
        let lapsed = self.has_lapsed(process) && self.holds(Rule::GuardsEndWithTheView);
        let gone = process.view.removed && answered.shard == GONE;
        lapsed || (gone && self.holds(Rule::RemovedIsNotBelieved))
    }

    pub(super) fn has_lapsed(&self, process: &Process) -> bool {
        self.config.view_lease.is_some() && process.view.left == 0
    }

    /// A removed shard grants as long as it is asked; a grant that no process can believe does not count.
    pub(super) fn may_be_believed(&self, world: &World, request: &Request) -> bool {
        if !world.topology.is_removed(request.shard) {
            return true;
        }
        let late = request.age >= self.config.lease || !world.is_awaited(request);
        !late && !self.is_dropped(world, request)
    }
}
