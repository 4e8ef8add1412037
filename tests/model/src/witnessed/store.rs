//! What a commit, or a read, does at the store.

use super::{
    Event, Rule, WitnessedModel, World,
    state::{Answer, Beat, Record, Request, Seen, Ticket, Told, What},
};

impl WitnessedModel {
    pub(super) fn serve(&self, world: &mut World, request: Request) {
        match request.what {
            What::Ask(over) => self.ask(world, request, over),
            What::Release => release(world, request),
            What::Beat => {
                beat(world, request.from);
                let is_own =
                    |record: &Record| record.owner == request.from && record.nonce == request.nonce;
                if world
                    .record
                    .as_ref()
                    .is_some_and(|record| is_own(record) && !record.is_claim)
                {
                    world.answer(answer(request, Told::Kept));
                }
            }
            What::Read => {
                let others = world.record.filter(|record| record.owner != request.from);
                if let Some(record) = others {
                    let seen = seen(world, &record);
                    world.answer(answer(request, Told::Seen(seen)));
                }
            }
        }
    }

    fn ask(&self, world: &mut World, request: Request, over: Option<Seen>) {
        let Request {
            from, nonce, sent, ..
        } = request;
        let is_granted = match &world.record {
            None => true,
            Some(record) if record.owner == from => record.nonce == nonce,
            Some(record) => over.is_some_and(|over| self.is_as_seen(world, record, over)),
        };
        if !is_granted {
            world.happened = over.map(|_| Event::TakeOverRefused);
            world.ticket = Some(Ticket {
                owner: from,
                nonce,
                sent,
            });
            return;
        }
        if world.record.is_some_and(|record| record.owner != from) {
            world.happened = Some(match over.is_some_and(|over| over.beat.is_none()) {
                true => Event::TakenOverUnbeaten,
                false => Event::TakenOver,
            });
        }
        world.ticket = world.ticket.filter(|ticket| ticket.owner != from);
        grant(world, from, nonce, false);
        if self.holds(Rule::GrantsWriteTheBeat) {
            beat(world, from);
        }
        world.answer(answer(request, Told::Granted));
    }

    /// Whether nothing has changed since it was seen.
    fn is_as_seen(&self, world: &World, record: &Record, over: Seen) -> bool {
        let goes_by_beat = match record.is_claim {
            true => !self.holds(Rule::ClaimsGoByTheDocument),
            false => self.holds(Rule::TakeOversCheckTheBeat),
        };
        record.stamp == over.stamp && (!goes_by_beat || world.beat(record.owner) == over.beat)
    }
}

/// The record goes, or the ticket; the ticket that is left is granted.
fn release(world: &mut World, request: Request) {
    let Request { from, nonce, .. } = request;
    world.ticket = (world.ticket).filter(|ticket| (ticket.owner, ticket.nonce) != (from, nonce));
    if !matches!(world.record, Some(record) if (record.owner, record.nonce) == (from, nonce)) {
        return;
    }
    world.record = None;
    if let Some(ticket) = world.ticket.take() {
        grant(world, ticket.owner, ticket.nonce, true);
        world.answer(Answer {
            to: ticket.owner,
            nonce: ticket.nonce,
            sent: ticket.sent,
            what: Told::Claim,
        });
    }
}

fn grant(world: &mut World, owner: u8, nonce: u8, is_claim: bool) {
    world.stamp += 1;
    world.record = Some(Record {
        owner,
        nonce,
        stamp: world.stamp,
        is_claim,
    });
}

fn beat(world: &mut World, process: u8) {
    world.beaten += 1;
    world.beats[usize::from(process)] = Some(Beat {
        number: world.beaten,
        at: world.now,
    });
}

pub(super) fn seen(world: &World, record: &Record) -> Seen {
    Seen {
        stamp: record.stamp,
        is_claim: record.is_claim,
        beat: world.beat(record.owner),
    }
}

fn answer(request: Request, what: Told) -> Answer {
    Answer {
        to: request.from,
        nonce: request.nonce,
        sent: request.sent,
        what,
    }
}
