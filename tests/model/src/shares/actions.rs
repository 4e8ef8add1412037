//! The steps that are possible.

use super::{
    Ask, Request, Rule, SharesModel, Step, Survival, World, network::Turn, state::Process,
};

/// One step. Numbers are processes or shards.
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
        /// The capacity that its process believes in.
        capacity: u8,
    },
    /// A nonce that waits is sent again.
    Recheck {
        /// The process.
        process: u8,
        /// The shard.
        shard: u8,
    },
    /// A process takes a look at A as a proof (broken rule).
    Prove(u8),
    /// A renewal is sent.
    Renew(u8),
    /// Another reader of the process comes to the one that holds, or a writer after it.
    Join(u8),
    /// A writer becomes a reader.
    Downgrade(u8),
    /// The shares are given back, or the process no longer waits.
    Release(u8),
    /// A request reaches its shard, and the reply its process.
    Deliver(Request),
    /// A request is lost, and the release behind it goes on.
    Lose(Request),
    /// The message of a grant from the queue reaches its process.
    Turn(Turn),
    /// The move is planned.
    Plan,
    /// A mover takes a step.
    Step(Step),
    /// A shard dies and comes back, or its replica does in its place.
    Restart {
        /// The shard.
        shard: u8,
        /// Its memory.
        survival: Survival,
    },
    /// A shard is armed with a fresh epoch.
    Arm(u8),
}

impl SharesModel {
    /// Every step that is possible.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        for process in &world.processes {
            self.enabled_at(world, process, actions);
        }
        enabled_deliveries(world, actions);
        actions.extend(world.network.turns.iter().copied().map(Action::Turn));
        self.enabled_steps(world, actions);
        self.enabled_restarts(world, actions);
    }

    fn enabled_at(&self, world: &World, process: &Process, actions: &mut Vec<Action>) {
        let index = process.nonce.process;
        let asks = if world.migration.is_some() {
            0..2
        } else {
            0..1
        };
        if process.waits.is_some() {
            if process.budget.rechecks > 0 {
                actions.extend(asks.map(|shard| Action::Recheck {
                    process: index,
                    shard,
                }));
            }
            actions.push(Action::Release(index));
        } else if let Some(guard) = process.guard {
            let renews = if self.is_prompt(index) {
                !process.fresh && !world.network.is_asked(process.nonce, guard.shard)
            } else {
                process.budget.renewals > 0
            };
            if renews {
                actions.push(Action::Renew(index));
            }
            let hands_on = guard.writes || self.breaks(Rule::ReadersHandNothingOn);
            if process.budget.joins > 0 && (hands_on || !self.is_writer(index)) {
                actions.push(Action::Join(index));
            }
            if guard.writes && process.budget.downgrades > 0 {
                actions.push(Action::Downgrade(index));
            }
            actions.push(Action::Release(index));
        } else if process.budget.acquisitions > 0 {
            for shard in asks {
                let capacities = self.config.capacities.iter().copied();
                actions.extend(capacities.map(|capacity| Action::Acquire {
                    process: index,
                    shard,
                    capacity,
                }));
            }
        }
        let may_prove = self.breaks(Rule::ProofAfterTheSeal) && world.migration.is_some();
        if may_prove && process.proof.is_none() {
            actions.push(Action::Prove(index));
        }
    }
}

/// A release goes behind the other requests of its nonce.
fn enabled_deliveries(world: &World, actions: &mut Vec<Action>) {
    let network = &world.network;
    for equal in network.requests.chunk_by(|one, other| one == other) {
        let request = equal[0];
        let Request { nonce, shard, .. } = request;
        let releases = request.ask == Ask::Release;
        if !(releases && network.is_asked(nonce, shard)) {
            actions.push(Action::Deliver(request));
        }
        if !request.ask.takes_away() && network.is_released(nonce, shard) {
            actions.push(Action::Lose(request));
        }
    }
}
