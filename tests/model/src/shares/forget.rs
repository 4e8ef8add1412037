//! Facts that can make no difference any more are forgotten, so that states that differ in nothing else
//! are one.

use super::{Ask, Request, SharesModel, World, network::Network};

impl SharesModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        self.forget_memories(world);
        self.forget_messages(world);
        for process in &mut world.processes {
            let over = process.waits.is_none() && process.guard.is_none();
            if process.waits.is_none() && process.budget.acquisitions == 0 {
                process.proof = None;
            }
            if over {
                process.asked = 0;
            }
        }
    }

    /// Without a restart to come, the earlier memory counts for nothing, and an entry of another life
    /// neither once grace is over.
    fn forget_memories(&self, world: &mut World) {
        let restarts = world.restarts > 0;
        for shard in &mut world.shards {
            if !restarts {
                shard.earlier.clear();
            }
            if !restarts && shard.slot.is_some_and(|slot| slot.grace == 0) {
                let life = shard.life;
                shard.memory.shares.retain(|share| share.life == life);
            }
        }
    }

    fn forget_messages(&self, world: &mut World) {
        let Network {
            mut requests,
            turns,
        } = std::mem::take(&mut world.network);
        for request in &mut requests {
            // Its age is read only for its process.
            if !request.ask.takes_away() && !world.is_alive(request.nonce) {
                request.age = self.config.lease;
            }
        }
        requests.sort();
        let mut network = Network { requests, turns };
        let kept = (network.requests.iter())
            .filter(|request| matters(world, &network, request))
            .copied()
            .collect();
        network.requests = kept;
        network.turns.retain(|turn| {
            let process = &world.processes[usize::from(turn.nonce.process)];
            let waits = process.nonce == turn.nonce && process.waits.is_some();
            waits && turn.age < self.config.claim
        });
        world.network = network;
    }
}

/// Whether it may do something, now or after the messages under way.
fn matters(world: &World, network: &Network, request: &Request) -> bool {
    let Request {
        nonce, shard, ask, ..
    } = *request;
    let state = &world.shards[usize::from(shard)];
    let known =
        state.memory.knows(nonce) || (state.earlier.iter()).any(|earlier| earlier.knows(nonce));
    match ask {
        Ask::Acquire { .. } | Ask::Renew { .. } | Ask::Adopt { .. } => true,
        Ask::Release | Ask::Remove => known || network.is_asked(nonce, shard),
    }
}
