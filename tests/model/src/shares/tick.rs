//! Time.

use super::{
    SharesModel, World,
    network::Request,
    state::{Memory, Process},
};

impl SharesModel {
    /// Whether a process's messages take no time, and it never forgets to renew.
    pub(super) fn is_prompt(&self, process: u8) -> bool {
        self.config.first_is_prompt && process == 0
    }

    /// Whether time may go on.
    pub(super) fn may_tick(&self, world: &World) -> bool {
        let first = &world.processes[0];
        let renewed = first.guard.is_none() || first.fresh;
        let own = |request: &Request| request.nonce == first.nonce && !request.ask.takes_away();
        let under_way = world.network.requests.iter().any(own);
        let is_up_to_date = !self.config.first_is_prompt || (renewed && !under_way);
        is_up_to_date && world.ticks != Some(0)
    }

    /// One tick, at every shard, at every process, and for all that is under way.
    pub(super) fn tick(&self, world: &mut World) {
        world.ticks = world.ticks.map(|ticks| ticks.saturating_sub(1));
        for process in 0..world.processes.len() {
            let process = process as u8;
            if end_tick(&mut world.processes[usize::from(process)]) {
                self.lose(world, process);
            }
        }
        for index in 0..2 {
            self.tick_shard(world, index);
        }
        world.network.age(self.config.lease);
    }

    /// A replica with a clock that is behind keeps entries that end here.
    fn tick_shard(&self, world: &mut World, index: u8) {
        let age_max = self.config.lease;
        let behind = self.config.clock_behind;
        let shard = world.shard(index);
        let before = shard.memory.clone();
        tick_memory(&mut shard.memory, age_max);
        if !behind {
            for earlier in &mut shard.earlier {
                tick_memory(earlier, age_max);
            }
        }
        if let Some(slot) = &mut shard.slot {
            slot.grace = slot.grace.saturating_sub(1);
        }
        if behind && before.shares.len() > shard.memory.shares.len() {
            self.remember(world, index, before);
        }
    }
}

/// Whether its guard ends.
fn end_tick(process: &mut Process) -> bool {
    process.fresh = false;
    let Some(guard) = &mut process.guard else {
        return false;
    };
    guard.left -= 1;
    guard.left == 0
}

fn tick_memory(memory: &mut Memory, age_max: u8) {
    for share in &mut memory.shares {
        share.left -= 1;
    }
    memory.shares.retain(|share| share.left > 0);
    for ticket in &mut memory.queue {
        ticket.left -= 1;
        ticket.age = age_max.min(ticket.age + 1);
    }
    memory.queue.retain(|ticket| ticket.left > 0);
}
