//! Pass: the shard grants to the heads of the queue while they fit.

use super::{
    Event, Nonce, Rule, SharesModel, Terms, Token, World,
    configurations::ALL,
    network::Turn,
    state::{Mode, Share, Slot, Ticket},
};

impl SharesModel {
    /// Grants for the claim time, and tells each process. `passing` are the terms of the request that
    /// runs this.
    pub(super) fn pass(&self, world: &mut World, shard: u8, passing: Option<Terms>) {
        let mut grants = 0;
        while let Some(ticket) = self.next_ticket(world, shard, passing) {
            let Ticket {
                nonce, terms, age, ..
            } = ticket;
            let share = self.grant(world, shard, nonce, terms, self.config.claim);
            world.network.turns.insert(Turn {
                nonce,
                shard,
                token: share.token,
                age,
            });
            grants += 1;
            if self.breaks(Rule::PassGrantsWhileTheyFit) {
                break;
            }
        }
        if grants > 1 {
            world.ledger.happened = Some(Event::TwoTurns);
        }
    }

    fn next_ticket(&self, world: &World, shard: u8, passing: Option<Terms>) -> Option<Ticket> {
        let slot = self.passing_slot(world, shard)?;
        let queue = &world.shards[usize::from(shard)].memory.queue;
        let theirs = passing.filter(|_| self.breaks(Rule::RoomByTheTicketsCapacity));
        let fits = |ticket: &&Ticket| {
            let terms = Terms {
                capacity: theirs.map_or(ticket.terms.capacity, |terms| terms.capacity),
                ..ticket.terms
            };
            self.fits(world, shard, &slot, terms)
        };
        if self.breaks(Rule::PassStopsAtTheHead) {
            queue.iter().find(fits).copied()
        } else {
            queue.first().filter(fits).copied()
        }
    }

    fn passing_slot(&self, world: &World, shard: u8) -> Option<Slot> {
        let in_grace = self.breaks(Rule::NoPassInGrace);
        (world.shards[usize::from(shard)].slot).filter(|slot| slot.grace == 0 || in_grace)
    }

    /// At the end of a script that made room: whether the head still fits.
    pub(super) fn note_idle_room(&self, world: &mut World, shard: u8) {
        let Some(slot) = self.passing_slot(world, shard) else {
            return;
        };
        let head = world.shard(shard).memory.queue.first().copied();
        let waits = head.is_some_and(|head| self.fits(world, shard, &slot, head.terms));
        world.ledger.room_left_idle |= waits;
    }

    /// A new entry, with a new token. Its ticket is used up.
    pub(super) fn grant(
        &self,
        world: &mut World,
        shard: u8,
        nonce: Nonce,
        terms: Terms,
        left: u8,
    ) -> Share {
        self.note_grant(world, shard, nonce, terms);
        let writes = self.is_writer(nonce.process);
        let state = world.shard(shard);
        let life = state.life;
        state.memory.forget_ticket(nonce);
        let mut token = Token::default();
        if let Some(slot) = &mut state.slot {
            token = slot.token.next();
            if writes || self.holds(Rule::ReadersAreCounted) {
                slot.token = token;
            }
        }
        let share = Share {
            nonce,
            shares: terms.shares,
            token,
            left,
            life,
        };
        self.write(world, shard, share);
        world.ledger.granted(token, writes);
        share
    }

    /// The facts of a grant that is about to be made.
    fn note_grant(&self, world: &mut World, shard: u8, nonce: Nonce, terms: Terms) {
        let Terms {
            shares, capacity, ..
        } = terms;
        let others = (world.processes.iter()).filter(|process| process.nonce != nonce);
        let guards = others.filter_map(|process| process.guard);
        let (mut held, mut downgraded) = (0, false);
        for guard in guards {
            held += guard.shares;
            downgraded |= !guard.writes && guard.token == world.ledger.newest_writer;
        }
        let queue = &world.shards[usize::from(shard)].memory.queue;
        let others = || queue.iter().filter(|ticket| ticket.nonce != nonce);
        let of_its_class = queue
            .iter()
            .take_while(|ticket| ticket.nonce != nonce)
            .any(|ticket| ticket.terms.preferred == terms.preferred);
        world.ledger.overtaken |=
            of_its_class || others().any(|ticket| ticket.terms.preferred && !terms.preferred);
        let went_before = others().any(|ticket| terms.preferred && !ticket.terms.preferred);
        world.ledger.granted_without_room |= held + shares > capacity;

        let writes = self.is_writer(nonce.process);
        let newest = world.ledger.newest;
        world.ledger.happened = if went_before {
            Some(Event::PreferredGrant)
        } else if downgraded {
            Some(Event::GrantAfterDowngrade)
        } else if self.importing_beside_left(world, shard) {
            Some(Event::GrantBesideLeft)
        } else if capacity < ALL && newest > Token::none_of(newest.epoch) {
            Some(Event::SmallerCapacity)
        } else if writes && newest > world.ledger.newest_writer {
            Some(Event::WriterAfterReader)
        } else {
            world.ledger.happened
        };
    }

    fn importing_beside_left(&self, world: &World, shard: u8) -> bool {
        let slot = world.shards[usize::from(shard)].slot;
        slot.is_some_and(|slot| slot.mode == Mode::Import && slot.left > Some(0))
    }

    /// The entry for a full lease, in this life.
    pub(super) fn extend(&self, world: &mut World, shard: u8, share: Share) {
        let life = world.shard(shard).life;
        let left = self.config.lease;
        self.write(
            world,
            shard,
            Share {
                left,
                life,
                ..share
            },
        );
    }

    /// Writes an entry with its own end.
    pub(super) fn write(&self, world: &mut World, shard: u8, share: Share) {
        let memory = &mut world.shard(shard).memory;
        memory.write(share);
        if self.breaks(Rule::SharesEndAlone) {
            for other in &mut memory.shares {
                other.left = share.left;
            }
        }
        if self.breaks(Rule::EntriesOfTheirLife) {
            for other in &mut memory.shares {
                other.life = share.life;
            }
        }
    }
}
