//! What a process does with its record without asking the shard: hand-off, linger, grant again.

use super::{
    Event, QueueModel, Rule, World,
    state::{Guard, Phase, Process},
};

impl QueueModel {
    /// Whether the next local waiter may have the lock.
    pub(super) fn may_hand_off(&self, process: &Process, guard: &Guard) -> bool {
        let within = !guard.contended
            || guard.handed_off < self.config.hand_offs_max
            || self.breaks(Rule::HandOffsAreBounded);
        guard.busy && within && self.has_token(process, guard)
    }

    /// Whether a local task may have the lock that lingers.
    pub(super) fn may_grant_again(&self, process: &Process, guard: &Guard) -> bool {
        let late = self.breaks(Rule::NoLocalGrantAfterTheRelease);
        !guard.busy && (!guard.contended || late) && self.has_token(process, guard)
    }

    fn has_token(&self, process: &Process, guard: &Guard) -> bool {
        process.budget.local_grants > 0 && !guard.block.is_empty()
    }

    /// The lock goes to another task of the process: the next in line, or a new one while it lingers.
    pub(super) fn grant_locally(&self, world: &mut World, process: u8) {
        let process = &mut world.processes[usize::from(process)];
        process.budget.local_grants -= 1;
        let Some(guard) = process.guard() else {
            return;
        };
        world.ledger.happened = Some(if guard.busy {
            Event::HandedOff
        } else {
            Event::GrantedAgain
        });
        if guard.busy && guard.contended {
            world.ledger.too_many_hand_offs |= guard.handed_off >= self.config.hand_offs_max;
            guard.handed_off = self.config.hand_offs_max.min(guard.handed_off + 1);
        }
        if self.holds(Rule::TokenPerHandOff) {
            guard.token = guard.block.take();
        }
        guard.busy = true;
        guard.held = 0;
        guard.left = guard.left.max(1); // past the deadline only where that rule is off
        world.ledger.held(guard.token);
    }

    /// The last local task is done, and the record is kept for a while.
    pub(super) fn linger(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let process = &mut world.processes[usize::from(process)];
        if !prompt {
            process.budget.local_grants -= 1;
        }
        if let Phase::Holding(guard) = &mut process.phase {
            guard.busy = false;
        }
    }
}
