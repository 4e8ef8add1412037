//! A shard that is gone for good. It cannot be told: so its clients must know by themselves.

use super::{
    Action, Request, Rule, SlotModel, Token, World,
    mover::DONE,
    state::{Guard, Mode, Process, Slot},
    topology::Removed,
};

impl SlotModel {
    /// How long a look at the topology is good for, where one may be removed.
    pub(super) fn view_lease(&self) -> u8 {
        self.config.view_lease.unwrap_or_default()
    }

    /// The shard that takes the slot of the removed one: of two, the other.
    fn successor(&self) -> u8 {
        1 - self.config.gone
    }

    pub(super) fn enabled_removal(&self, world: &World, actions: &mut Vec<Action>) {
        let topology = &world.topology;
        let at_once =
            self.breaks(Rule::RemovalWaitsForViews) || self.breaks(Rule::NoReclaimBeforeViewsLapse);
        let has_part = topology.owner == self.config.gone || topology.under_way.is_some();
        match topology.removed {
            None if self.config.view_lease.is_some() && has_part => {
                actions.push(Action::DeclareGone);
            }
            None => {}
            Some(Removed { epoch: Some(_), .. }) => actions.push(Action::ForceOpen),
            Some(removed) if removed.views == 0 || at_once => actions.push(Action::AllotAgain),
            Some(_) => {}
        }
    }

    /// Whether looking makes a difference.
    pub(super) fn may_look(&self, world: &World, process: &Process) -> bool {
        let view = process.view;
        let news = seen(world) != (view.removed, view.opens);
        self.config.view_lease.is_some() && (news || view.left < self.view_lease())
    }

    /// The process confirms its view, or has a new one.
    pub(super) fn look(&self, world: &mut World, process: u8) {
        let news = seen(world);
        let view = &mut world.processes[usize::from(process)].view;
        view.left = self.view_lease();
        (view.removed, view.opens) = news;
    }

    /// Whether a process's view lets it ask that shard; where none is removed, any picture of the
    /// ring is possible.
    pub(super) fn may_ask(&self, process: &Process, shard: u8) -> bool {
        let moves = !self.config.plan.is_empty();
        match process.view.removed {
            true => shard == self.successor(),
            false => self.config.view_lease.is_none() || moves || shard == self.config.gone,
        }
    }

    /// Where the process renews its guard. None: the guard is at the removed shard, and the next one
    /// may not be opened yet.
    pub(super) fn renewed_at(&self, process: &Process, guard: &Guard) -> Option<u8> {
        let moves = process.view.removed && guard.shard == self.config.gone;
        let waits = !process.view.opens && self.holds(Rule::RemovedHolderWaits);
        match moves {
            true => (!waits).then(|| self.successor()),
            false => Some(guard.shard),
        }
    }

    /// The swap that says so. A move under way ends with it.
    pub(super) fn declare_gone(&self, world: &mut World) {
        let topology = &mut world.topology;
        topology.removed = Some(Removed {
            shard: self.config.gone,
            views: self.view_lease(),
            epoch: None,
        });
        topology.owner = self.successor();
        topology.under_way = None;
    }

    /// The swap that lets the successor take the slot: every view has lapsed.
    pub(super) fn allot_again(&self, world: &mut World) {
        let epoch = world.topology.fresh_epoch();
        if let Some(removed) = &mut world.topology.removed {
            removed.epoch = Some(epoch);
        }
    }

    /// The successor waits for holders to come.
    pub(super) fn force_open(&self, world: &mut World) {
        let Some(Removed {
            views,
            epoch: Some(epoch),
            ..
        }) = world.topology.removed
        else {
            return;
        };
        let grace = if self.breaks(Rule::GraceAfterViews) {
            0
        } else if self.breaks(Rule::NoReclaimBeforeViewsLapse) {
            views + self.config.lease
        } else {
            self.config.lease
        };
        let slot = &mut world.shard(self.successor()).slot;
        let guard = (epoch, DONE);
        // A repeat never sets running timers again.
        if let Some(slot) = slot.as_mut().filter(|slot| slot.guard < guard) {
            *slot = Slot {
                token: slot.token.max(Token::none_of(epoch)),
                grace,
                ..Slot::new(Mode::Open, guard, epoch)
            };
        }
    }

    /// Whether a process makes nothing of an answer: its view has lapsed, or has no such shard.
    pub(super) fn is_dropped(&self, world: &World, answered: &Request) -> bool {
        let process = &world.processes[usize::from(answered.nonce.process)];
        let lapsed = self.has_lapsed(process) && self.holds(Rule::GuardsEndWithTheView);
        let gone = process.view.removed && answered.shard == self.config.gone;
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

/// Whether a shard is removed by the record, and whether the next may have been opened.
fn seen(world: &World) -> (bool, bool) {
    let removed = world.topology.removed;
    let opens = removed.is_some_and(|removed| removed.epoch.is_some());
    (removed.is_some(), opens)
}
