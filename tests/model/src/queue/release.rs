//! Release: giving a record back, and giving an attempt up.

use super::{
    Event, Nonce, QueueModel, Rule, World,
    network::Ask,
    state::{Phase, Process},
};

impl QueueModel {
    /// Belief ends first, then the release is sent.
    pub(super) fn release(&self, world: &mut World, process: u8) {
        let process = &mut world.processes[usize::from(process)];
        let nonce = process.nonce;
        let Some(guard) = process.guard().copied() else {
            return;
        };
        if guard.contended {
            world.ledger.happened = Some(Event::GivenBack);
        }
        if guard.busy || self.holds(Rule::NoLocalGrantAfterTheRelease) {
            self.end(process);
        }
        world.network.send(nonce, Ask::Release);
    }

    /// The task gives up, or what lingers has come to its deadline.
    pub(super) fn abandon(&self, world: &mut World, process: u8) {
        let process = &mut world.processes[usize::from(process)];
        self.end(process);
        world.network.send(process.nonce, Ask::Release);
    }

    /// A guard ends by itself.
    pub(super) fn lose(&self, world: &mut World, process: u8) {
        world.ledger.healthy_guard_lost |= self.is_prompt(process);
        self.end(&mut world.processes[usize::from(process)]);
    }

    /// Belief ends.
    pub(super) fn end(&self, process: &mut Process) {
        if self.breaks(Rule::BlockDiesWithItsNonce) {
            process.leftover = process.guard().map(|guard| guard.block);
        }
        process.phase = Phase::Idle;
    }

    /// The shard: neither record nor ticket of that nonce stays.
    pub(super) fn release_at_shard(&self, world: &mut World, nonce: Nonce) {
        let memory = &mut world.shard.memory;
        if self.holds(Rule::ReleaseTakesTheTicket) {
            memory.queue.retain(|ticket| ticket.nonce != nonce);
        }
        let by_nonce = self.holds(Rule::ReleaseByNonce);
        memory.record = memory.record.filter(|record| {
            if by_nonce {
                record.nonce != nonce
            } else {
                record.nonce.process != nonce.process
            }
        });
        self.pass(world);
    }
}
