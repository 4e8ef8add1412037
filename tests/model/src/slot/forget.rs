//! What can make no difference any more is forgotten, so that states that differ in nothing else
//! are one.

use super::{
    Ask, Nonce, Request, Rule, SlotModel, World,
    network::Network,
    state::{Memory, Record},
};

impl SlotModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        self.forget_memories(world);
        self.forget_messages(world);
        for index in 0..world.processes.len() {
            self.forget_at(world, index);
        }
    }

    /// Without another restart to come, the earlier memory counts for nothing, and a record of
    /// another life neither once grace is over.
    fn forget_memories(&self, world: &mut World) {
        let restarts = world.left.restarts > 0;
        let keeps_slots = self.breaks(Rule::LifeNamesEveryFailover);
        let keeps_former = self.breaks(Rule::HandshakePerConnection);
        let keeps_records = self.breaks(Rule::RecordsOfItsLife);
        for shard in &mut world.shards {
            if !keeps_slots {
                forget_slots(&mut shard.earlier);
            }
            if !restarts {
                shard.earlier.clear();
            }
            if !keeps_former {
                shard.former = None;
            }
            let Some(slot) = shard.slot else {
                continue;
            };
            shard.read = None;
            if !restarts && slot.grace == 0 && !keeps_records {
                let life = shard.life;
                shard.record = shard.record.filter(|record| record.life == life);
            }
        }
    }

    fn forget_messages(&self, world: &mut World) {
        let Network {
            mut requests,
            replies,
        } = std::mem::take(&mut world.network);
        if self.holds(Rule::HandshakePerConnection) {
            requests
                .retain(|request| world.shards[usize::from(request.shard)].life == request.life);
        }
        for request in &mut requests {
            if !world.is_awaited(request) && !matches!(request.ask, Ask::Release) {
                // Its age is no longer read.
                request.age = self.config.lease;
            }
        }
        requests.sort();
        let network = Network { requests, replies };
        let requests = (network.requests.iter())
            .filter(|request| self.matters(world, &network, request))
            .copied()
            .collect();
        let replies = (network.replies.iter())
            .filter(|reply| world.is_awaited(&reply.to))
            .copied()
            .collect();
        world.network = Network { requests, replies };
    }

    /// Whether it may take a record away, now or after the messages under way.
    fn matters(&self, world: &World, network: &Network, request: &Request) -> bool {
        let Request { nonce, shard, .. } = *request;
        let by_process = self.breaks(Rule::ReleaseByNonce);
        let shard_state = &world.shards[usize::from(shard)];
        let is_known = |record: &Record| {
            record.nonce == nonce || (by_process && record.nonce.process == nonce.process)
        };
        let earlier = (shard_state.earlier.iter()).filter_map(|memory| memory.record);
        let known = earlier.chain(shard_state.record).any(|it| is_known(&it));
        let asks = |other: &Request| {
            other.nonce == nonce
                && other.shard == shard
                && !matches!(other.ask, Ask::Release | Ask::Remove { .. })
        };
        let asked = network.requests.iter().any(asks);
        match request.ask {
            Ask::Acquire { .. } | Ask::Renew(_) | Ask::Adopt { .. } => true,
            Ask::Release => known || asked || self.may_release_a_guard(world, nonce),
            Ask::Remove { .. } => {
                known || asked || (self.breaks(Rule::RemoveInItsMove) && is_alive(world, nonce))
            }
        }
    }

    fn may_release_a_guard(&self, world: &World, nonce: Nonce) -> bool {
        let broken = self.breaks(Rule::NoReleaseUnderAGuard) || self.breaks(Rule::ReleaseByNonce);
        broken && is_alive(world, nonce)
    }

    fn forget_at(&self, world: &mut World, index: usize) {
        let network = &world.network;
        let process = &mut world.processes[index];
        for shard in 0..self.config.shards {
            if !network.is_asked(process.nonce, shard) {
                process.released &= !(1 << shard);
            }
        }
        if process.budget.acquisitions == 0 {
            process.proven = process.proven.filter(|proven| proven.keeps_nonce);
        }
    }
}

/// What comes back under the name of a former life is not found by it.
fn forget_slots(earlier: &mut [Memory]) {
    for memory in earlier {
        memory.slot = None;
    }
}

fn is_alive(world: &World, nonce: Nonce) -> bool {
    let process = &world.processes[usize::from(nonce.process)];
    process.nonce == nonce && (process.guard.is_some() || process.call.is_some())
}
