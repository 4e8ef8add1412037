//! Reserve: another block of tokens for hand-offs.

use super::{
    Nonce, QueueModel, Rule, Token, World,
    network::{Answer, Ask},
    state::Block,
};

impl QueueModel {
    /// The process asks; a later request takes the place of one that is not answered.
    pub(super) fn reserve(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let process = &mut world.processes[usize::from(process)];
        if !prompt {
            process.budget.renewals -= 1;
        }
        let nonce = process.nonce;
        if let Some(guard) = process.guard() {
            guard.reserves += 1;
            guard.reserving = true;
            let number = guard.reserves;
            world.network.send(nonce, Ask::Reserve(number));
        }
    }

    /// The shard: for the nonce's own live record only, which it extends.
    pub(super) fn reserve_at_shard(&self, world: &mut World, nonce: Nonce, number: u8) -> Answer {
        let own = (self.live_record(world)).filter(|record| record.nonce == nonce);
        let block = own.map(|record| {
            self.extend(world, record);
            let shard = &mut world.shard;
            let next = Token {
                epoch: shard.epoch,
                counter: shard.counter + 1,
            };
            shard.counter += self.config.block;
            world.ledger.reserved(next, shard.counter);
            Block {
                next,
                last: shard.counter,
            }
        });
        if block.is_none() {
            self.pass(world);
        }
        Answer::Reserved {
            number,
            block,
            contended: self.is_contended(world, nonce),
        }
    }

    /// The process: only for the request that asked last.
    pub(super) fn reserved(
        &self,
        world: &mut World,
        (nonce, age): (Nonce, u8),
        number: u8,
        block: Option<Block>,
        contended: bool,
    ) {
        let left = self.config.lease.saturating_sub(age);
        let process = world.process(nonce);
        let same_nonce = process.nonce == nonce;
        let Some(guard) = process.guard() else {
            return;
        };
        let asked = same_nonce && guard.reserving && guard.reserves == number;
        if !asked && self.holds(Rule::ReserveMatchesItsRequest) {
            return;
        }
        guard.contended |= contended;
        if let Some(block) = block {
            guard.block = block;
        }
        if asked {
            guard.reserving = false;
            if block.is_some() {
                guard.left = guard.left.max(left);
                guard.fresh = true;
            }
        }
    }
}
