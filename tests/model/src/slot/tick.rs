//! Time, and what a prompt process has done before it goes on.

use super::{
    Rule, SlotModel, World,
    state::{Record, Shard},
};

impl SlotModel {
    /// Whether a process's messages take no time, and it never forgets to renew.
    pub(super) fn is_prompt(&self, process: u8) -> bool {
        self.config.first_is_prompt && process == 0
    }

    /// Whether time may go on.
    pub(super) fn may_tick(&self, world: &World) -> bool {
        let first = &world.processes[0];
        let renewed = first.guard.is_none() || first.fresh;
        !self.config.first_is_prompt || (renewed && first.call.is_none())
    }

    /// One tick, at every shard, at every process, and for all that is under way.
    pub(super) fn tick(&self, world: &mut World) {
        for process in 0..world.processes.len() {
            self.tick_process(world, process);
        }
        for (index, shard) in (0..).zip(&mut world.shards) {
            let mortal = world.left.restarts > 0 && self.config.restarting.contains(&index);
            self.tick_shard(shard, mortal);
        }
        if let Some(removed) = &mut world.topology.removed {
            removed.views = removed.views.saturating_sub(1);
        }
        world.network.age(self.config.lease);
    }

    fn tick_process(&self, world: &mut World, index: usize) {
        let process = &mut world.processes[index];
        process.fresh = false;
        process.view.left = process.view.left.saturating_sub(1);
        if let Some(call) = &mut process.call {
            let older = |age: u8| self.config.lease.min(age + 1);
            call.last_sent = call.last_sent.map(older);
        }
        let lapsed = self.has_lapsed(process) && self.holds(Rule::GuardsEndWithTheView);
        let Some(guard) = &mut process.guard else {
            return;
        };
        guard.left -= 1;
        if guard.left == 0 || lapsed {
            process.expired = process
                .guard
                .filter(|_| self.breaks(Rule::NoReclaimPastTheDeadline));
            let nonce = process.nonce;
            self.lose(world, nonce);
        }
    }

    /// A replica with a clock that is behind keeps expired records for any time.
    fn tick_shard(&self, shard: &mut Shard, mortal: bool) {
        let behind = self.config.clock_behind;
        if behind && mortal && shard.record.is_some_and(|record| record.left == 1) {
            let memory = shard.memory();
            shard.earlier.push(memory);
            if shard.earlier.len() > 2 {
                shard.earlier.remove(0);
            }
        }
        tick_record(&mut shard.record);
        for slot in [&mut shard.slot, &mut shard.former].into_iter().flatten() {
            slot.grace = slot.grace.saturating_sub(1);
        }
        if !behind {
            for memory in &mut shard.earlier {
                tick_record(&mut memory.record);
            }
        }
    }
}

fn tick_record(record: &mut Option<Record>) {
    if let Some(record) = record {
        record.left -= 1;
    }
    *record = record.filter(|record| record.left > 0);
}
