//! What a request does at the store.

use super::{
    Event, Rule, WitnessedModel, World,
    state::{Answer, Clock, Document, Effect, Request, Told},
};

impl WitnessedModel {
    pub(super) fn serve(&self, world: &mut World, request: Request) {
        let put = request
            .tick
            .is_some_and(|tick| self.put_forward(world, tick));
        let what = Told::Read {
            aim: request.aim,
            clock: world.clock,
            put,
            document: world.document,
        };
        world.answer(answer(request, what));
    }

    fn put_forward(&self, world: &mut World, tick: Clock) -> bool {
        if self.holds(Rule::TicksDependOnTheClock) && tick.revision != world.clock.revision {
            world.happened = Some(Event::TickRefused);
            return false;
        }
        world.clock = Clock {
            revision: world.clock.revision + 1,
            shows: tick.shows,
        };
        true
    }
}

/// Commits what was decided by the answer to a read: at once, since a later commit is refused if the document has changed.
pub(super) fn commit(world: &mut World, read: Answer, document: Document, effect: Option<Effect>) {
    let before = world.document;
    if document.version != before.version + 1 {
        return;
    }
    world.document = document;
    let owner = |document: Document| document.record.map(|record| (record.owner, record.nonce));
    match effect {
        None => {}
        Some(Effect::Granted) => {
            if before.record.is_some() && owner(before) != owner(document) {
                world.happened = Some(Event::TakenOver);
            }
            world.answer(Answer {
                what: Told::Granted,
                ..read
            });
        }
        Some(Effect::Claimed(ticket)) => world.answer(Answer {
            to: ticket.owner,
            nonce: ticket.nonce,
            sent: ticket.sent,
            what: Told::Claimed,
        }),
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
