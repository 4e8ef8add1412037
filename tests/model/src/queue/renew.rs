//! Renew: a full lease again; in grace, the record put back.

use super::{
    Event, Nonce, QueueModel, Rule, Token, World,
    network::{Answer, Ask},
    state::Record,
};

impl QueueModel {
    /// The process asks, for its present token.
    pub(super) fn renew(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let process = &mut world.processes[usize::from(process)];
        if !prompt {
            process.budget.renewals -= 1;
        }
        let nonce = process.nonce;
        if let Some(guard) = process.guard() {
            let token = guard.token;
            world.network.send(nonce, Ask::Renew(token));
        }
    }

    /// The shard: extends its own record, puts it back in grace, or says `lost`.
    pub(super) fn renew_at_shard(&self, world: &mut World, nonce: Nonce, token: Token) -> Answer {
        let any = self.breaks(Rule::RenewItsOwnRecord);
        match self.live_record(world) {
            Some(record) if record.nonce == nonce || any => {
                self.extend(world, Record { nonce, ..record });
            }
            _ if self.may_reclaim(world, token) => self.reclaim(world, nonce, token),
            _ => {
                self.pass(world);
                return Answer::Lost;
            }
        }
        let contended = self.is_contended(world, nonce) && self.holds(Rule::RenewTellsWhoWaits);
        Answer::Renewed { contended }
    }

    /// In grace, and nothing is there, or an older record that came back.
    fn may_reclaim(&self, world: &World, token: Token) -> bool {
        self.holds(Rule::ReclaimInGrace)
            && world.shard.grace > 0
            && (self.live_record(world)).is_none_or(|record| record.token < token)
    }

    fn reclaim(&self, world: &mut World, nonce: Nonce, token: Token) {
        world.ledger.happened = Some(Event::Reclaimed);
        let life = world.shard.life;
        let memory = &mut world.shard.memory;
        memory.queue.retain(|ticket| ticket.nonce != nonce);
        memory.record = Some(Record {
            nonce,
            token,
            last: token.counter,
            left: self.config.lease,
            life,
        });
    }

    /// The process: the deadline counts from the send of that renewal.
    pub(super) fn renewed(&self, world: &mut World, nonce: Nonce, age: u8, contended: bool) {
        let left = self.config.lease.saturating_sub(age);
        if let Some(guard) = world.process(nonce).guard() {
            guard.left = guard.left.max(left);
            guard.contended |= contended;
            guard.fresh = true;
        }
    }
}
