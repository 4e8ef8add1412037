//! Release: giving a record back, and giving up what was not answered.

use super::{Ask, Nonce, Request, Rule, SlotModel, World};

impl SlotModel {
    /// Belief ends first; then the release is sent, in a move to both shards.
    pub(super) fn release(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        let nonce = client.nonce;
        let Some(guard) = client.guard.take() else {
            return;
        };
        let call = client.call.take();
        self.send(world, nonce, guard.shard, Ask::Release);
        if let Some(call) = call.filter(|call| call.shard != guard.shard) {
            self.send(world, nonce, call.shard, Ask::Release);
        }
    }

    /// The process no longer waits for the answer. An acquisition ends there; a guard goes on.
    pub(super) fn give_up(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        let nonce = client.nonce;
        let Some(call) = client.call.take() else {
            return;
        };
        match call.ask {
            Ask::Acquire { .. } => {
                self.end_attempt(world, nonce);
                self.send(world, nonce, call.shard, Ask::Release);
            }
            Ask::Adopt { .. } if self.breaks(Rule::NoReleaseUnderAGuard) => {
                self.send(world, nonce, call.shard, Ask::Release);
            }
            _ => {}
        }
    }

    /// A guard ends by itself.
    pub(super) fn lose(&self, world: &mut World, nonce: Nonce) {
        world.ledger.healthy_guard_lost |= self.is_prompt(nonce.process);
        let process = world.process(nonce);
        process.guard = None;
        // An acquisition is called without a guard.
        process.call = None;
    }

    /// The shard: no record of that nonce stays.
    pub(super) fn release_at_shard(&self, world: &mut World, request: &Request) {
        let Request { nonce, shard, .. } = *request;
        let by_nonce = self.holds(Rule::ReleaseByNonce);
        let process = world.process(nonce);
        if process.nonce == nonce {
            process.released |= 1 << shard;
        }
        let shard = world.shard(shard);
        shard.record = shard.record.filter(|record| {
            if by_nonce {
                record.nonce != nonce
            } else {
                record.nonce.process != nonce.process
            }
        });
    }
}
