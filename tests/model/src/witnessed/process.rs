//! What a process makes of an answer.

use super::{
    Event, Rule, WitnessedModel, World,
    sight::Asked,
    state::{Aim, Answer, Clock, Document, Doing, Effect, Record, Ticket, Told},
    store::commit,
};

impl WitnessedModel {
    pub(super) fn hear(&self, world: &mut World, answer: Answer) {
        match answer.what {
            Told::Read {
                aim,
                clock,
                put,
                document,
            } => {
                let asked = Asked {
                    sent: answer.sent,
                    answered: world.now,
                    put,
                };
                let its = world.process_mut(answer.to);
                let sight = self.sight(its.sight, asked, clock);
                its.sight = Some(sight);
                let from = clock.shows + self.slack(&sight, asked, clock);
                decide(
                    world,
                    answer,
                    aim,
                    clock,
                    document,
                    from + self.config.lease,
                );
            }
            Told::Granted | Told::Claimed => self.believe(world, answer),
        }
    }

    /// The document is as the process knows it: otherwise the commit does nothing.
    pub(super) fn recall(&self, world: &mut World, from: u8, aim: Aim) {
        let (now, its) = (world.now, world.process(from));
        let known = its
            .sight
            .and_then(|sight| Some((sight.clock, self.late(&sight, now)?)));
        let Some((clock, late)) = known else { return };
        let commit = Answer {
            to: from,
            nonce: its.nonce,
            sent: now,
            what: Told::Granted,
        };
        let (before, granted) = (world.document, world.answers.len());
        decide(
            world,
            commit,
            aim,
            clock,
            before,
            clock.shows + late + self.config.lease,
        );
        if world.answers.len() > granted && clock != world.clock {
            world.happened = world.happened.or(Some(Event::Recalled));
        }
    }

    /// Deadlines count from the sending of the request, or of the ticket.
    fn believe(&self, world: &mut World, answer: Answer) {
        let now = world.now;
        let its = world.process(answer.to);
        if its.nonce != answer.nonce {
            return;
        }
        let from = match self.holds(Rule::DeadlinesCountFromTheSending) {
            true => answer.sent,
            false => now,
        };
        let (until, before) = (from + self.config.lease, its.doing);
        let doing = match before {
            Doing::Nothing => return,
            Doing::Waiting if now >= until => return,
            Doing::Waiting => Doing::Holding(until),
            Doing::Holding(before) => Doing::Holding(before.max(until)),
        };
        if doing != before {
            world.happened = match (before, answer.what) {
                (Doing::Holding(_), _) => Some(Event::Extended),
                (_, Told::Claimed) => Some(Event::Claimed),
                _ => None,
            };
        }
        world.process_mut(answer.to).doing = doing;
    }
}

/// Applies the rules of a shard to what was read, and commits the difference.
fn decide(world: &mut World, answer: Answer, aim: Aim, clock: Clock, before: Document, ends: u8) {
    let Answer {
        to, nonce, sent, ..
    } = answer;
    match aim {
        Aim::Look => return,
        Aim::Ask if world.process(to).nonce != nonce => return,
        Aim::Ask | Aim::Release => {}
    }
    let is_own = |record: &Record| (record.owner, record.nonce) == (to, nonce);
    let live = before.record.filter(|record| clock.shows < record.ends);
    let others = before
        .ticket
        .filter(|ticket| (ticket.owner, ticket.nonce) != (to, nonce));
    let record = |owner, nonce| Some(Record { owner, nonce, ends });
    let (record, ticket, effect) = match (aim, live) {
        (Aim::Ask, Some(live)) if is_own(&live) => {
            (record(to, nonce), others, Some(Effect::Granted))
        }
        (Aim::Ask, Some(_)) => {
            let own = Ticket {
                owner: to,
                nonce,
                sent,
            };
            (before.record, Some(others.unwrap_or(own)), None)
        }
        (Aim::Release, Some(live)) if !is_own(&live) => (before.record, others, None),
        // It is free, or becomes so: the waiter goes first.
        (aim, _) => match (others, aim) {
            (Some(next), _) => (
                record(next.owner, next.nonce),
                None,
                Some(Effect::Claimed(next)),
            ),
            (None, Aim::Ask) => (record(to, nonce), None, Some(Effect::Granted)),
            (None, _) => (None, None, None),
        },
    };
    let after = Document {
        version: before.version,
        record,
        ticket,
    };
    if after == before && effect.is_none() {
        return;
    }
    let document = Document {
        version: before.version + 1,
        ..after
    };
    commit(world, answer, document, effect);
}
