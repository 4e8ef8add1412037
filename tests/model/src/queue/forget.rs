//! What can make no difference any more is forgotten, so that states that differ in nothing else
//! are one.

use super::{
    Answer, Nonce, Push, QueueModel, Rule, World,
    network::{Ask, Network, Request},
    state::{Phase, Shard},
};

impl QueueModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        forget_memory(world);
        let network = std::mem::take(&mut world.network);
        let requests = (network.requests.iter())
            .filter(|request| self.request_matters(world, &network, request))
            .copied()
            .collect();
        let replies = (network.replies.iter())
            .filter(|reply| self.answer_matters(world, reply.nonce, reply.age, reply.answer))
            .copied()
            .collect();
        let pushes = (network.pushes.iter())
            .filter(|push| self.push_matters(world, push))
            .copied()
            .collect();
        world.network = Network {
            requests,
            replies,
            pushes,
        };
    }

    /// Whether it may change the shard's memory, now or after the messages under way.
    fn request_matters(&self, world: &World, network: &Network, request: &Request) -> bool {
        let Request { nonce, ask, .. } = *request;
        let shard = &world.shard;
        let passes = !shard.memory.queue.is_empty();
        let acquires = network.asks(nonce).any(|ask| ask == Ask::Acquire);
        let matters = passes || acquires || knows(shard, nonce);
        match ask {
            Ask::Acquire | Ask::Stay => true,
            Ask::Release => {
                let renews = |ask| matches!(ask, Ask::Renew(_)); // in grace it brings a record back
                matters || network.asks(nonce).any(renews) || self.breaks(Rule::ReleaseByNonce)
            }
            Ask::Renew(_) | Ask::Reserve(_) => {
                let grace = world.restarts > 0 || shard.grace > 0 || !shard.armed;
                matters
                    || grace
                    || world.is_alive(nonce)
                    || self.breaks(Rule::RenewItsOwnRecord)
                    || self.breaks(Rule::ReserveMatchesItsRequest)
            }
        }
    }

    fn answer_matters(&self, world: &World, nonce: Nonce, age: u8, answer: Answer) -> bool {
        let alive = world.is_alive(nonce);
        match answer {
            Answer::Granted(_) => alive && age < self.config.lease,
            Answer::Held => {
                alive
                    && (self.breaks(Rule::TurnNeverFromTheLastHeld)
                        || self.breaks(Rule::LateHeldIsIgnored))
            }
            Answer::Renewed { .. } | Answer::Lost => alive,
            Answer::Reserved { .. } => alive || self.breaks(Rule::ReserveMatchesItsRequest),
        }
    }

    fn push_matters(&self, world: &World, push: &Push) -> bool {
        match *push {
            Push::Turn { nonce, age, .. } => {
                let keeps = self.breaks(Rule::TurnMatchesItsNonce) || self.watches_sends();
                keeps || (world.is_waiting(nonce) && self.turn_left(age, None) > 0)
            }
            Push::Contended(nonce) => {
                let process = &world.processes[usize::from(nonce.process)];
                process.nonce == nonce
                    && matches!(process.phase, Phase::Holding(guard) if !guard.contended)
            }
        }
    }
}

/// Without another restart to come, a record of another life counts for nothing once grace is over,
/// and the earlier memory for nothing at all.
fn forget_memory(world: &mut World) {
    if world.restarts > 0 {
        return;
    }
    let shard = &mut world.shard;
    shard.earlier = None;
    if shard.armed && shard.grace == 0 {
        let life = shard.life;
        let memory = &mut shard.memory;
        memory.record = memory.record.filter(|record| record.life == life);
    }
}

fn knows(shard: &Shard, nonce: Nonce) -> bool {
    (shard.earlier.iter().chain([&shard.memory])).any(|memory| memory.knows(nonce))
}
