//! What may happen next.

use super::{
    Ask, Push, QueueModel, Reply, Request, Rule, Survival, World,
    state::{Attempt, Guard, Phase, Process},
};

/// One step. Numbers are processes.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A first send.
    Acquire(u8),
    /// The same nonce again.
    Recheck(u8),
    /// An attempt is given up.
    Abandon(u8),
    /// A renewal is sent.
    Renew(u8),
    /// More tokens are asked for.
    Reserve(u8),
    /// A local waiter, or one that comes while the record lingers, has the lock.
    GrantLocally(u8),
    /// No local task wants the lock; the record is kept.
    Linger(u8),
    /// The record is given back.
    Release(u8),
    /// A process dies.
    Crash(u8),
    /// A request reaches the shard.
    Deliver(Request),
    /// A reply reaches its process.
    Answer(Reply),
    /// A push reaches its process, for the first time or again.
    Push(Push),
    /// The shard dies and comes back.
    Restart(Survival),
    /// It is armed.
    Arm,
    /// Its slot is sealed.
    Seal,
    /// Another shard is told that the key is free.
    ProveAbsence,
    /// The other shard grants.
    GrantElsewhere(u8),
}

impl QueueModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        for process in &world.processes {
            self.enabled_at(world, process, actions);
        }
        if world.shard.armed {
            self.enabled_deliveries(world, actions);
        } else {
            actions.push(Action::Arm);
        }
        actions.extend(world.network.replies.iter().copied().map(Action::Answer));
        actions.extend(world.network.pushes.iter().copied().map(Action::Push));
        if world.restarts > 0 {
            actions.extend(self.config.survives.iter().copied().map(Action::Restart));
        }
        self.enabled_seal(world, actions);
    }

    fn enabled_at(&self, world: &World, process: &Process, actions: &mut Vec<Action>) {
        let index = process.nonce.process;
        match &process.phase {
            Phase::Idle if process.budget.acquisitions > 0 => actions.push(Action::Acquire(index)),
            Phase::Idle => {}
            Phase::Waiting(attempt) => self.enabled_waiting(world, process, attempt, actions),
            Phase::Holding(guard) => self.enabled_holding(world, process, guard, actions),
        }
        if process.phase != Phase::Idle && world.crashes > 0 {
            actions.push(Action::Crash(index));
        }
    }

    fn enabled_waiting(
        &self,
        world: &World,
        process: &Process,
        attempt: &Attempt,
        actions: &mut Vec<Action>,
    ) {
        let index = process.nonce.process;
        let rechecks = if self.is_prompt(index) {
            !attempt.fresh && !world.network.is_busy(process.nonce)
        } else {
            process.budget.rechecks > 0
        };
        if rechecks {
            actions.push(Action::Recheck(index));
        }
        if self.config.abandons {
            actions.push(Action::Abandon(index));
        }
    }

    fn enabled_holding(
        &self,
        world: &World,
        process: &Process,
        guard: &Guard,
        actions: &mut Vec<Action>,
    ) {
        let index = process.nonce.process;
        let prompt = self.is_prompt(index);
        let asks = guard.busy
            && if prompt {
                !guard.fresh && !world.network.is_busy(process.nonce)
            } else {
                process.budget.renewals > 0
            };
        if asks {
            actions.push(Action::Renew(index));
        }
        let short = guard.block.tokens_left() <= u8::from(!prompt);
        if asks && short && process.budget.local_grants > 0 {
            actions.push(Action::Reserve(index));
        }
        if self.may_hand_off(process, guard) || self.may_grant_again(process, guard) {
            actions.push(Action::GrantLocally(index));
        }
        let lingers = self.config.lingers && (prompt || process.budget.local_grants > 0);
        if lingers && guard.busy && !guard.contended {
            actions.push(Action::Linger(index));
        }
        actions.push(Action::Release(index));
    }

    fn enabled_deliveries(&self, world: &World, actions: &mut Vec<Action>) {
        let network = &world.network;
        for equal in network.requests.chunk_by(|one, other| one == other) {
            let request = equal[0];
            let behind = request.ask == Ask::Release
                && network.asks(request.nonce).next().is_some()
                && self.holds(Rule::ReleaseBehindItsRequests);
            if !behind {
                actions.push(Action::Deliver(request));
            }
        }
    }
}
