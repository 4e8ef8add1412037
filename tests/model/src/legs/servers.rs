//! What the accounts do with requests.

use super::{
    Event, LegsModel, Rule, World,
    state::{Answer, Credit, Entry, FUNDS, LEGS, Request},
};

impl LegsModel {
    /// Applies a request at its account.
    pub(super) fn arrive(&self, world: &mut World, request: Request) -> Answer {
        match request {
            Request::Promise(leg, attempt) => self.promise(world, leg, attempt),
            Request::Give(leg, attempt) => self.give(world, leg, attempt),
            Request::Forget(leg, attempt) => {
                let destination = world.destination_mut(leg);
                let credit = &mut destination.credits[usize::from(attempt)];
                match credit {
                    Credit::Promised => {
                        *credit = Credit::Refused;
                        if self.holds(Rule::PromisesKeepRoom) {
                            destination.room += 1;
                        }
                        world.happened = Some(Event::TakenBack);
                    }
                    Credit::Pinned => *credit = Credit::Forgettable,
                    _ => {}
                }
                Answer::Done
            }
            Request::Commit(attempt) => self.commit(world, attempt),
            Request::Finish(refused) => {
                if let Entry::Committed(attempt) = world.source.entry {
                    world.source.value += refused.count_ones() as u8;
                    world.source.entry = Entry::Paid { attempt, refused };
                    world.happened = Some(match refused {
                        0 => Event::Paid,
                        _ => Event::CameBack,
                    });
                }
                Answer::Entry(world.source.entry)
            }
            Request::Cancel => {
                if world.source.entry == Entry::Unseen {
                    world.source.entry = Entry::Over;
                }
                Answer::Entry(world.source.entry)
            }
        }
    }

    fn promise(&self, world: &mut World, leg: u8, attempt: u8) -> Answer {
        let records = self.holds(Rule::RefusalsAreRecorded);
        let keeps_room = self.holds(Rule::PromisesKeepRoom);
        let destination = world.destination_mut(leg);
        let credit = &mut destination.credits[usize::from(attempt)];
        match credit {
            Credit::Promised => Answer::Promised,
            Credit::Pinned | Credit::Forgettable => Answer::Paid,
            Credit::Refused => Answer::Refused,
            Credit::Unknown if destination.forgetful => Answer::Refused,
            Credit::Unknown if destination.closed || destination.room <= 0 => {
                if records {
                    *credit = Credit::Refused;
                }
                Answer::Refused
            }
            Credit::Unknown => {
                *credit = Credit::Promised;
                if keeps_room {
                    destination.room -= 1;
                }
                Answer::Promised
            }
        }
    }

    fn give(&self, world: &mut World, leg: u8, attempt: u8) -> Answer {
        let outlives = self.holds(Rule::PromisesOutliveClosing);
        let keeps_room = self.holds(Rule::PromisesKeepRoom);
        let destination = world.destination_mut(leg);
        let at = usize::from(attempt);
        let is_promised = destination.credits[at] == Credit::Promised;
        let may_receive = match destination.credits[at] {
            Credit::Pinned | Credit::Forgettable => return Answer::Paid,
            Credit::Refused => return Answer::Refused,
            Credit::Unknown if destination.forgetful => return Answer::Refused,
            Credit::Unknown => !destination.closed && destination.room > 0,
            Credit::Promised => {
                (outlives || !destination.closed) && (keeps_room || destination.room > 0)
            }
        };
        if !may_receive {
            destination.credits[at] = Credit::Refused;
            return Answer::Refused;
        }
        destination.credits[at] = Credit::Pinned;
        destination.paid[at] += 1;
        destination.value += 1;
        if !(is_promised && keeps_room) {
            destination.room -= 1;
        }
        if is_promised && destination.closed {
            world.happened = Some(Event::KeptThoughClosed);
        }
        Answer::Paid
    }

    fn commit(&self, world: &mut World, attempt: u8) -> Answer {
        let source = &mut world.source;
        match source.entry {
            Entry::Held => {
                source.value += FUNDS - LEGS as u8;
                source.entry = Entry::Committed(attempt);
            }
            Entry::Unseen => {
                source.value -= LEGS as u8;
                source.entry = Entry::Committed(attempt);
            }
            Entry::Committed(_) if self.breaks(Rule::OneDecision) => {
                source.entry = Entry::Committed(attempt);
            }
            _ => {}
        }
        Answer::Entry(source.entry)
    }
}
