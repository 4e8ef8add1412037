//! Pass: the shard grants to the head of the queue; and the turn, as its process takes it.

use super::{
    Event, Nonce, QueueModel, Rule, Token, World,
    network::{Grant, Push},
    state::{Block, Guard, Phase, Record, Slot},
};

impl QueueModel {
    /// If no record is live, the first live ticket is granted, for its claim time.
    pub(super) fn pass(&self, world: &mut World) {
        let in_grace = world.shard.grace > 0 && self.holds(Rule::NoTurnInGrace);
        let sealed = world.shard.slot != Slot::Open && self.holds(Rule::SealedNeverPasses);
        if in_grace || sealed || self.live_record(world).is_some() {
            return;
        }
        let queue = &mut world.shard.memory.queue;
        queue.retain(|ticket| ticket.left > 0);
        let Some(head) = queue.first().copied() else {
            return;
        };
        let grant = self.grant(world, head.nonce, self.config.claim);
        let age = if self.holds(Rule::TurnNeverByTheShardsClock) {
            head.age
        } else {
            0 // the grant's
        };
        let nonce = head.nonce;
        self.push(world, Push::Turn { nonce, grant, age });
    }

    /// A new record, with a new token and its block. Its ticket is used up.
    pub(super) fn grant(&self, world: &mut World, nonce: Nonce, left: u8) -> Grant {
        let shard = &mut world.shard;
        let ahead = (shard.memory.queue.iter()).take_while(|ticket| ticket.nonce != nonce);
        world.ledger.overtaken |= ahead.filter(|ticket| ticket.left > 0).count() > 0;
        shard.memory.queue.retain(|ticket| ticket.nonce != nonce);

        let token = Token {
            epoch: shard.epoch,
            counter: shard.counter + 1,
        };
        let last = shard.counter + self.config.block;
        shard.counter = if self.holds(Rule::BlockReservedAtTheShard) {
            last
        } else {
            token.counter
        };
        shard.memory.record = Some(Record {
            nonce,
            token,
            last,
            left,
            life: shard.life,
        });
        world.ledger.reserved(token, last);
        world.ledger.granted = Some(nonce);
        Grant {
            token,
            last,
            contended: self.is_contended(world, nonce),
        }
    }

    /// The record that counts: not expired, and of this life unless grace still runs.
    pub(super) fn live_record(&self, world: &World) -> Option<Record> {
        let shard = &world.shard;
        (shard.memory.record).filter(|record| record.life == shard.life || shard.grace > 0)
    }

    /// The same record, with a full lease.
    pub(super) fn extend(&self, world: &mut World, record: Record) {
        world.shard.memory.record = Some(Record {
            left: self.config.lease,
            life: world.shard.life,
            ..record
        });
    }

    /// Whether a process other than this nonce's has a live ticket.
    pub(super) fn is_contended(&self, world: &World, nonce: Nonce) -> bool {
        (world.shard.memory.queue.iter())
            .any(|ticket| ticket.nonce.process != nonce.process && ticket.left > 0)
    }

    /// Tells a process something unasked, unless this configuration loses all of that.
    pub(super) fn push(&self, world: &mut World, push: Push) {
        if self.config.pushes {
            world.network.pushes.insert(push);
        }
    }

    /// The process: a turn is the late answer to the request it echoes, for the claim time.
    pub(super) fn take_turn(&self, world: &mut World, nonce: Nonce, grant: Grant, age: u8) {
        let restarted = world.shard.life > 0 && grant.token.epoch == world.shard.epoch;
        let process = world.process(nonce);
        let (present, matches) = (process.nonce, process.nonce == nonce);
        let Some(attempt) = process.attempt().copied() else {
            return;
        };
        let left = self.turn_left(age, attempt.counts_from);
        if left == 0 || (!matches && self.holds(Rule::TurnMatchesItsNonce)) {
            return;
        }
        self.believe(world, present, grant, left);
        if let Some(guard) = world.process(present).guard() {
            guard.fresh = !self.is_prompt(present.process); // renewed at once, for the full lease
        }
        world.ledger.happened = Some(if restarted {
            Event::TurnTakenAfterRestart
        } else {
            Event::TurnTaken
        });
    }

    /// The rest of a turn that echoes a send of that age; a broken rule counts from another.
    pub(super) fn turn_left(&self, age: u8, counts_from: Option<u8>) -> u8 {
        let claim = if self.holds(Rule::TurnLastsItsClaimTime) {
            self.config.claim
        } else {
            self.config.lease
        };
        if self.breaks(Rule::TurnNeverFromReceipt) {
            claim
        } else if self.breaks(Rule::TurnNeverByTheShardsClock) {
            (claim + 1).saturating_sub(age)
        } else {
            claim.saturating_sub(counts_from.unwrap_or(age))
        }
    }

    /// The process: the lock is its own, until `left` ticks from now.
    pub(super) fn believe(&self, world: &mut World, nonce: Nonce, grant: Grant, left: u8) {
        if left == 0 {
            return;
        }
        let own = Block {
            next: grant.token.next(),
            last: grant.last,
        };
        let process = world.process(nonce);
        let leftover = process.leftover.take().filter(|block| !block.is_empty());
        process.phase = Phase::Holding(Guard {
            token: grant.token,
            block: leftover.unwrap_or(own),
            left,
            busy: true,
            contended: grant.contended,
            handed_off: 0,
            reserves: 0,
            reserving: false,
            fresh: true,
            held: 0,
        });
        world.ledger.held(grant.token);
    }
}
