//! What a process does.

use super::{
    Event, LegsModel, Rule, World,
    state::{Answer, Caller, Credit, Entry, LEGS, Request},
};

const LAST: u8 = LEGS as u8 - 1;

impl LegsModel {
    pub(super) fn start(&self, world: &mut World, process: u8, attempt: u8) {
        self.wait(world, process, Request::Promise(0, attempt), attempt, 0);
    }

    /// Pays what was decided.
    pub(super) fn pay(&self, world: &mut World, process: u8, attempt: u8) {
        self.wait(world, process, Request::Give(0, attempt), attempt, 0);
    }

    /// Tells all destinations that it is over.
    fn end(&self, world: &mut World, process: u8, attempt: u8) {
        self.wait(world, process, Request::Forget(0, attempt), attempt, 0);
    }

    /// Sends a request, and waits for its answer.
    fn wait(&self, world: &mut World, process: u8, request: Request, attempt: u8, refused: u8) {
        world.send(request);
        world.callers[usize::from(process)] = Caller::Waits {
            request,
            attempt,
            refused,
        };
    }

    /// Looks at the source of a credit that is not finished.
    pub(super) fn sweep(&self, world: &mut World, process: u8, leg: u8, attempt: u8) {
        let takes_back = self.breaks(Rule::OnlyTheEndTakesBack);
        let is_promise = world.credit(leg, attempt) == Credit::Promised;
        match world.source.entry {
            Entry::Committed(decided) if decided == attempt => {
                world.happened = Some(Event::Continued);
                self.pay(world, process, attempt);
            }
            Entry::Held | Entry::Unseen if takes_back && is_promise => {
                self.end(world, process, attempt);
            }
            Entry::Held => {}
            Entry::Unseen => self.wait(world, process, Request::Cancel, attempt, 0),
            Entry::Committed(_) | Entry::Paid { .. } | Entry::Over => {
                self.end(world, process, attempt);
            }
        }
    }

    /// It does not wait any longer.
    pub(super) fn give_up(&self, world: &mut World, process: u8) {
        let Caller::Waits {
            request, attempt, ..
        } = world.callers[usize::from(process)]
        else {
            return;
        };
        match request {
            Request::Promise(..) | Request::Commit(_)
                if self.breaks(Rule::OnlyRefusalsTakeBack) =>
            {
                self.end(world, process, attempt);
            }
            _ => world.callers[usize::from(process)] = Caller::Idle,
        }
    }

    /// Goes on after an answer.
    pub(super) fn receive(&self, world: &mut World, process: u8, answer: Answer) {
        match world.callers[usize::from(process)] {
            Caller::Waits {
                request,
                attempt,
                refused,
            } => self.next(world, process, (request, attempt, refused), answer),
            Caller::Asks { attempt } => match answer {
                Answer::Entry(Entry::Committed(decided)) => self.pay(world, process, decided),
                _ => self.end(world, process, attempt),
            },
            Caller::Idle | Caller::Dead => {}
        }
    }

    fn next(
        &self,
        world: &mut World,
        process: u8,
        (request, attempt, refused): (Request, u8, u8),
        answer: Answer,
    ) {
        let next = match (request, answer) {
            (Request::Promise(..), Answer::Refused) => {
                world.callers[usize::from(process)] = Caller::Asks { attempt };
                return;
            }
            (Request::Promise(leg, _), _) => {
                match leg < LAST && self.holds(Rule::AllPromiseFirst) {
                    true => Request::Promise(leg + 1, attempt),
                    false if self.breaks(Rule::DecidedBeforePaid) => Request::Give(0, attempt),
                    false => Request::Commit(attempt),
                }
            }
            (Request::Commit(_) | Request::Cancel, Answer::Entry(entry)) => match entry {
                Entry::Committed(decided) => return self.pay(world, process, decided),
                _ => Request::Forget(0, attempt),
            },
            (Request::Give(leg, _), answer) => {
                let refused = refused | u8::from(answer == Answer::Refused) << leg;
                let next = match leg < LAST {
                    true => Request::Give(leg + 1, attempt),
                    false => Request::Finish(refused),
                };
                return self.wait(world, process, next, attempt, refused);
            }
            (Request::Finish(_), _) => Request::Forget(0, attempt),
            (Request::Forget(leg, _), _) if leg < LAST => Request::Forget(leg + 1, attempt),
            _ => {
                world.callers[usize::from(process)] = Caller::Idle;
                return;
            }
        };
        self.wait(world, process, next, attempt, refused);
    }
}
