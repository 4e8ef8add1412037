//! Acquire: a nonce's first send and its re-checks, and what the shard makes of them.

use super::{
    Event, Nonce, QueueModel, Rule, World,
    network::{Answer, Ask, Grant, Push, Request},
    state::{Attempt, Memory, Phase, Record, Slot, Ticket},
};

impl QueueModel {
    /// A task wants the lock, and its process does not have it.
    pub(super) fn acquire(&self, world: &mut World, process: u8) {
        let process = &mut world.processes[usize::from(process)];
        process.budget.acquisitions -= 1;
        process.nonce.sequence += 1;
        process.phase = Phase::Waiting(Attempt {
            fresh: true,
            waited: 0,
            counts_from: self.watches_sends().then_some(0),
        });
        world.network.send(process.nonce, Ask::Acquire);
    }

    /// The same nonce again, with a new `sent`.
    pub(super) fn recheck(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let later = self.breaks(Rule::TurnNeverFromALaterSend);
        let process = &mut world.processes[usize::from(process)];
        if !prompt {
            process.budget.rechecks -= 1;
        }
        let nonce = process.nonce;
        if let Some(attempt) = process.attempt() {
            attempt.fresh = true;
            if later {
                attempt.counts_from = Some(0);
            }
        }
        world.network.send(nonce, Ask::Acquire);
    }

    /// The shard: refuses in grace, passes to the queue, then grants, extends or queues.
    pub(super) fn acquire_at_shard(
        &self,
        world: &mut World,
        nonce: Nonce,
        age: u8,
    ) -> Option<Answer> {
        let refused = world.shard.grace > 0 && self.holds(Rule::NoGrantInGrace);
        if refused {
            self.queue(&mut world.shard.memory, nonce, age);
        }
        if self.holds(Rule::QueueBeforeNewcomer) {
            self.pass(world);
        }
        if refused {
            return None;
        }
        let sealed = world.shard.slot != Slot::Open;
        match self.live_record(world) {
            Some(record) if record.nonce == nonce => Some(self.found(world, record)),
            _ if sealed => None,
            Some(_) if self.config.tickets_apart && world.shard.memory.awaits(nonce) => {
                let ask = Ask::Stay;
                world.network.put(Request { nonce, ask, age });
                None
            }
            Some(record) => {
                self.queue(&mut world.shard.memory, nonce, age);
                let first = world.shard.memory.queue.first();
                if first.is_some_and(|first| first.nonce == nonce) {
                    self.push(world, Push::Contended(record.nonce));
                }
                Some(Answer::Held)
            }
            None => Some(Answer::Granted(self.grant(world, nonce, self.config.lease))),
        }
    }

    /// The shard: it looked at the lock before, and the lock may be another since.
    pub(super) fn stay_at_shard(&self, world: &mut World, nonce: Nonce, age: u8) -> Answer {
        match world.shard.memory.awaits(nonce) {
            true => self.queue(&mut world.shard.memory, nonce, age),
            false => world.ledger.happened = Some(Event::StayedInVain),
        }
        Answer::Held
    }

    /// A re-check finds the grant made to it.
    fn found(&self, world: &mut World, record: Record) -> Answer {
        world.ledger.happened = Some(Event::GrantFound);
        if self.holds(Rule::RecheckExtends) {
            self.extend(world, record);
        }
        Answer::Granted(Grant {
            token: record.token,
            last: record.last,
            contended: self.is_contended(world, record.nonce),
        })
    }

    /// A ticket keeps its place; `sent` becomes the later one.
    fn queue(&self, memory: &mut Memory, nonce: Nonce, age: u8) {
        let left = self.config.ticket;
        match memory.queue.iter_mut().find(|ticket| ticket.nonce == nonce) {
            Some(ticket) => {
                ticket.age = ticket.age.min(age);
                ticket.left = left;
            }
            None => memory.queue.push(Ticket { nonce, age, left }),
        }
    }

    /// The process: granted, from the send of the very request that was answered.
    pub(super) fn granted(&self, world: &mut World, nonce: Nonce, age: u8, grant: Grant) {
        let left = self.config.lease.saturating_sub(age);
        let process = world.process(nonce);
        match &mut process.phase {
            Phase::Waiting(_) => self.believe(world, nonce, grant, left),
            // A late answer extends the guard that a turn made.
            Phase::Holding(guard) if grant.token <= guard.token => {
                guard.left = guard.left.max(left)
            }
            _ => {}
        }
    }

    /// The process: queued. Broken rules make something of it.
    pub(super) fn held(&self, world: &mut World, nonce: Nonce, age: u8) {
        let counts = self.breaks(Rule::TurnNeverFromTheLastHeld);
        let kills = self.breaks(Rule::LateHeldIsIgnored);
        match &mut world.process(nonce).phase {
            // Until one is answered it counts from the first send, and none is older.
            Phase::Waiting(attempt) if counts => {
                attempt.counts_from = attempt.counts_from.map(|from| from.min(age));
            }
            Phase::Holding(_) if kills => self.lose(world, nonce.process),
            _ => {}
        }
    }

    /// Whether a broken rule has a turn count from a send that the turn does not name.
    pub(super) fn watches_sends(&self) -> bool {
        self.breaks(Rule::TurnNeverFromALaterSend) || self.breaks(Rule::TurnNeverFromTheLastHeld)
    }
}
