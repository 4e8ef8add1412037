//! What may happen next.

use super::{
    Ask, Reply, Request, Rule, SlotModel, Step, Survival, World,
    state::{Call, Process},
};

/// One step. Numbers are processes, shards or moves.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A new nonce is sent.
    Acquire {
        /// The process.
        process: u8,
        /// The shard.
        shard: u8,
    },
    /// A nonce goes to where its proof is good.
    AcquireWithProof(u8),
    /// An invalid proof is accepted (broken rules).
    Prove(u8),
    /// A renewal is sent.
    Renew(u8),
    /// The same request is sent again.
    Repeat(u8),
    /// The answer is no longer waited for.
    GiveUp(u8),
    /// The record is given back.
    Release(u8),
    /// The process looks at the topology.
    Look(u8),
    /// A request reaches its shard.
    Deliver(Request),
    /// A request is lost, and what waits behind it goes on.
    Lose(Request),
    /// A reply reaches its process.
    Answer(Reply),
    /// The next move is planned.
    Plan,
    /// The move under way is aborted.
    Abort,
    /// A mover takes a step.
    Step {
        /// Of which of the moves that ever were.
        migration: u8,
        /// Which.
        step: Step,
    },
    /// A shard dies and comes back, or its replica does in its place.
    Restart {
        /// Which.
        shard: u8,
        /// With what memory.
        survival: Survival,
    },
    /// The topology records a shard's new life, with a fresh epoch.
    Record(u8),
    /// A shard is armed.
    Arm {
        /// Which.
        shard: u8,
        /// By a process that read the topology when it recorded that life, and has slept since.
        late: bool,
    },
    /// A shard is given a fresh epoch for its tokens.
    Raise(u8),
    /// The topology says that a shard is gone for good.
    DeclareGone,
    /// Its views have lapsed: the topology allots the epoch at which the other takes its slot.
    AllotAgain,
    /// The other takes it.
    ForceOpen,
}

impl SlotModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        for process in &world.processes {
            self.enabled_at(world, process, actions);
        }
        self.enabled_deliveries(world, actions);
        actions.extend(world.network.replies.iter().copied().map(Action::Answer));
        self.enabled_plans(world, actions);
        self.enabled_steps(world, actions);
        self.enabled_restarts(world, actions);
        self.enabled_removal(world, actions);
    }

    fn enabled_at(&self, world: &World, process: &Process, actions: &mut Vec<Action>) {
        let index = process.nonce.process;
        let has_view = self.config.view_lease.is_none() || process.view.left > 0;
        match process.call {
            Some(call) => self.enabled_waiting(world, process, call, actions),
            None if has_view && process.guard.is_none() => {
                self.enabled_acquiring(world, process, actions);
            }
            None => {}
        }
        let holds = process.guard.is_some();
        let renews = if self.is_prompt(index) {
            holds && !process.fresh
        } else {
            (holds || process.expired.is_some()) && process.budget.renewals > 0
        };
        if renews && has_view && process.call.is_none() {
            actions.push(Action::Renew(index));
        }
        if holds {
            actions.push(Action::Release(index));
        }
        if self.may_look(world, process) {
            actions.push(Action::Look(index));
        }
    }

    fn enabled_acquiring(&self, world: &World, process: &Process, actions: &mut Vec<Action>) {
        let index = process.nonce.process;
        let acquires = process.budget.acquisitions > 0;
        if acquires {
            let shards = (0..self.config.shards).filter(|shard| self.may_ask(process, *shard));
            actions.extend(shards.map(|shard| Action::Acquire {
                process: index,
                shard,
            }));
        }
        match process.proven {
            Some(proven) if proven.keeps_nonce || acquires => {
                actions.push(Action::AcquireWithProof(index));
            }
            None if self.may_prove(world) => actions.push(Action::Prove(index)),
            _ => {}
        }
    }

    /// Where rules about proofs are broken.
    fn may_prove(&self, world: &World) -> bool {
        let Some(migration) = world.topology.migration() else {
            return false;
        };
        let looks = self.breaks(Rule::ProofAfterTheSeal);
        let free = world.shards[usize::from(migration.from)].record.is_none();
        let other = self.breaks(Rule::ProofOfItsKey) && migration.known.sealed.is_some();
        (looks && free) || other
    }

    fn enabled_waiting(
        &self,
        world: &World,
        process: &Process,
        call: Call,
        actions: &mut Vec<Action>,
    ) {
        let index = process.nonce.process;
        let repeats = if self.is_prompt(index) {
            !is_under_way(world, process, call)
        } else {
            world.left.repeats > 0 && !call.repeated
        };
        if repeats {
            actions.push(Action::Repeat(index));
        }
        if !self.is_prompt(index) {
            actions.push(Action::GiveUp(index));
        }
    }

    fn enabled_deliveries(&self, world: &World, actions: &mut Vec<Action>) {
        let network = &world.network;
        let in_order = self.holds(Rule::ReleaseBehindItsRequests);
        for equal in network.requests.chunk_by(|one, other| one == other) {
            let request = equal[0];
            let Request { nonce, shard, .. } = request;
            let is_release = request.ask == Ask::Release;
            if !(in_order && is_release && network.is_asked(nonce, shard)) {
                actions.push(Action::Deliver(request));
            }
            if in_order && !is_release && network.is_released(nonce, shard) {
                actions.push(Action::Lose(request));
            }
        }
    }
}

/// Whether the request or its answer will come.
fn is_under_way(world: &World, process: &Process, call: Call) -> bool {
    let is_it = |request: &Request| {
        request.nonce == process.nonce && request.shard == call.shard && request.ask == call.ask
    };
    let network = &world.network;
    network.requests.iter().any(is_it) || network.replies.iter().any(|reply| is_it(&reply.to))
}
