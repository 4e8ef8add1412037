//! Acquire: a nonce's first request and its re-checks, and the shard's side.

use super::{
    Ask, Event, Nonce, Request, Rule, SharesModel, Terms, World,
    configurations::ALL,
    network::Turn,
    state::{Guard, Mode, Share, Slot, Ticket},
};

impl SharesModel {
    /// A new nonce, by any view of the ring.
    pub(super) fn acquire(&self, world: &mut World, process: u8, shard: u8, capacity: u8) {
        let terms = self.terms(process, capacity);
        let client = &mut world.processes[usize::from(process)];
        client.budget.acquisitions -= 1;
        client.nonce.sequence += 1;
        client.waits = Some(terms);
        client.asked = 0;
        self.ask(world, process, shard, terms);
    }

    /// Another reader of the process has the lease too, or another writer has it after the present one, until its
    /// deadline. No shard is asked.
    pub(super) fn join(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        client.budget.joins -= 1;
        let Some(guard) = &mut client.guard else {
            return;
        };
        if self.breaks(Rule::JoinsUntilTheDeadline) {
            guard.left = self.config.lease;
        }
        if self.is_writer(process) {
            (guard.writes, guard.shares) = (true, ALL);
            world.ledger.happened = Some(Event::HandedOn);
        } else {
            guard.holders += 1;
            world.ledger.happened = Some(Event::ReaderJoined);
        }
    }

    /// The same nonce again, at the same shard or the other.
    pub(super) fn recheck(&self, world: &mut World, process: u8, shard: u8) {
        let client = &mut world.processes[usize::from(process)];
        let Some(terms) = client.waits else {
            return;
        };
        client.budget.rechecks -= 1;
        self.ask(world, process, shard, terms);
    }

    fn ask(&self, world: &mut World, process: u8, shard: u8, terms: Terms) {
        let client = &world.processes[usize::from(process)];
        let (nonce, proof) = (client.nonce, client.proof.filter(|_| shard == 1));
        self.send(world, nonce, shard, Ask::Acquire { terms, proof });
    }

    /// A process reads how many shares A holds, before it is sealed (broken rule).
    pub(super) fn prove(&self, world: &mut World, process: u8) {
        let left = world.shards[0]
            .memory
            .shares
            .iter()
            .map(|share| share.shares)
            .sum();
        world.processes[usize::from(process)].proof = Some(left);
    }

    /// The shard: extends its own shares, proves, grants or queues.
    pub(super) fn acquire_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        mut slot: Slot,
        terms: Terms,
        proof: Option<u8>,
    ) {
        let Request {
            nonce, shard, age, ..
        } = *request;
        let proves = slot.mode == Mode::Sealed && self.breaks(Rule::NoProofInGrace);
        if slot.grace > 0 && !proves {
            self.queue(world, shard, nonce, terms, age);
            return;
        }
        if let Some(left) = proof.filter(|_| slot.mode == Mode::Import) {
            slot.lower_left(left);
            world.shard(shard).slot = Some(slot);
        }
        self.pass(world, shard, Some(terms));
        let own = self.own_share(world, shard, &slot, nonce);
        if let Some(own) = own {
            self.extend(world, shard, own);
            self.granted(world, request, own, self.config.lease);
        } else if slot.mode == Mode::Sealed {
            world.shard(shard).memory.forget_ticket(nonce);
            self.answer_left(world, request, &slot);
        } else if self.may_be_next(world, shard, nonce, terms)
            && self.fits(world, shard, &slot, terms)
        {
            let share = self.grant(world, shard, nonce, terms, self.config.lease);
            self.granted(world, request, share, self.config.lease);
        } else {
            self.queue(world, shard, nonce, terms, age);
        }
    }

    /// The live entry of that nonce.
    pub(super) fn own_share(
        &self,
        world: &World,
        shard: u8,
        slot: &Slot,
        nonce: Nonce,
    ) -> Option<Share> {
        (self.live_shares(world, shard, slot)).find(|share| share.nonce == nonce)
    }

    /// Whether no other ticket is ahead of that nonce.
    fn may_be_next(&self, world: &World, shard: u8, nonce: Nonce, terms: Terms) -> bool {
        let queue = &world.shards[usize::from(shard)].memory.queue;
        let before_all = self.breaks(Rule::PreferredWaitForEachOther);
        let goes_before =
            |ticket: &Ticket| terms.preferred && (before_all || !ticket.terms.preferred);
        let first = queue.first();
        let first = first.is_none_or(|ticket| ticket.nonce == nonce || goes_before(ticket));
        first || self.breaks(Rule::NoBarging)
    }

    /// A ticket keeps its place. A new one is the last, or the last of those that are preferred.
    fn queue(&self, world: &mut World, shard: u8, nonce: Nonce, terms: Terms, age: u8) {
        let Some(left) = self.config.ticket else {
            return;
        };
        let queue = &mut world.shard(shard).memory.queue;
        match queue.iter_mut().find(|ticket| ticket.nonce == nonce) {
            Some(ticket) => {
                ticket.age = ticket.age.min(age);
                ticket.left = left;
            }
            None => {
                let ahead = match terms.preferred && self.holds(Rule::PreferredGoFirst) {
                    true => queue.partition_point(|ticket| ticket.terms.preferred),
                    false => queue.len(),
                };
                let ticket = Ticket {
                    nonce,
                    terms,
                    age,
                    left,
                };
                queue.insert(ahead, ticket);
            }
        }
    }

    /// A sealed shard's answer, and its process: the shares left here.
    fn answer_left(&self, world: &mut World, request: &Request, slot: &Slot) {
        let left = self.left_at(world, request.shard, slot);
        let process = world.process(request.nonce);
        if process.nonce == request.nonce {
            process.proof = Some(process.proof.map_or(left, |known| known.min(left)));
        }
    }

    /// The number that a proof or a list carries.
    pub(super) fn left_at(&self, world: &World, shard: u8, slot: &Slot) -> u8 {
        if self.breaks(Rule::LeftIsInShares) {
            self.live_shares(world, shard, slot).count() as u8
        } else {
            self.live_sum(world, shard, slot)
        }
    }

    /// The process: granted, from the send of the very request that was answered.
    fn granted(&self, world: &mut World, request: &Request, share: Share, lasts: u8) {
        let left = lasts.saturating_sub(request.age);
        self.believe(world, request.nonce, request.shard, share, left);
    }

    /// The process: a turn is the late answer to the request that it echoes, for the claim time.
    pub(super) fn take_turn(&self, world: &mut World, turn: Turn) {
        let Turn {
            nonce,
            shard,
            token,
            age,
        } = turn;
        let Some(Terms { shares, .. }) = world.process(nonce).waits else {
            return;
        };
        let left = self.config.claim.saturating_sub(age);
        let share = Share {
            nonce,
            shares,
            token,
            left,
            life: 0,
        };
        if left > 0 && self.believe(world, nonce, shard, share, left) {
            world.process(nonce).fresh = false;
            world.ledger.happened = Some(Event::TurnTaken);
        }
    }

    /// The process has the shares until `left` ticks from now. Whether it did not before.
    fn believe(&self, world: &mut World, nonce: Nonce, shard: u8, share: Share, left: u8) -> bool {
        let writes = self.is_writer(nonce.process);
        let process = world.process(nonce);
        if process.nonce != nonce || left == 0 {
            return false;
        }
        if let Some(guard) = &mut process.guard {
            if guard.shard == shard && guard.token == share.token {
                guard.left = guard.left.max(left);
            }
            return false;
        }
        if process.waits.take().is_none() {
            return false;
        }
        process.guard = Some(Guard {
            shard,
            token: share.token,
            shares: share.shares,
            writes,
            holders: 1,
            left,
        });
        process.fresh = true;
        if world.guards().count() > 1 {
            world.ledger.happened = Some(Event::HeldTogether);
        }
        true
    }
}
