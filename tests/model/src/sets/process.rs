//! What a caller does.

use super::{
    Event, Rule, SetsModel, World,
    state::{Doing, Stray},
};

/// The keys of a set of bits, in the order that all callers share.
pub(super) fn each(keys: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |key| keys >> key & 1 == 1)
}

impl SetsModel {
    /// All the keys that a process wants.
    pub(super) fn all_of(&self, process: u8) -> u8 {
        let wish = self.config.wishes[usize::from(process)];
        wish.keys.iter().fold(0, |all, key| all | 1 << key)
    }

    /// The key that it waits for while it holds those.
    pub(super) fn next_of(&self, process: u8, held: u8) -> Option<u8> {
        let lacks = |key: &u8| held >> key & 1 == 0;
        match self.holds(Rule::OneOrder) {
            true => each(self.all_of(process)).find(lacks),
            false => {
                let given = self.config.wishes[usize::from(process)].keys;
                given.iter().copied().find(lacks)
            }
        }
    }

    pub(super) fn call(&self, world: &mut World, process: u8) {
        let (now, all) = (world.now, self.all_of(process));
        let its = world.process_mut(process);
        its.call += 1;
        its.began = now;
        its.calls -= 1;
        its.doing = match all.count_ones() == 1 && self.waits(process) {
            // The wait is a try as well.
            true => Doing::Waiting {
                since: now,
                held: 0,
            },
            false => Doing::Trying {
                since: now,
                unanswered: all,
                granted: 0,
            },
        };
    }

    fn waits(&self, process: u8) -> bool {
        self.config.wishes[usize::from(process)].wait > 0
    }

    /// The answer to the try of a key.
    pub(super) fn tried(&self, world: &mut World, process: u8, key: u8) {
        let nonce = world.of_tries(process);
        let is_granted = self.try_key(world, key, nonce);
        let Doing::Trying {
            since,
            mut unanswered,
            mut granted,
        } = world.process(process).doing
        else {
            return;
        };
        unanswered &= !(1 << key);
        granted |= u8::from(is_granted) << key;
        world.process_mut(process).doing = Doing::Trying {
            since,
            unanswered,
            granted,
        };
        let all = self.all_of(process);
        if unanswered > 0 {
            return;
        }
        if granted == all {
            return self.granted(world, process, Event::GrantedAtOnce(process));
        }
        if !self.waits(process) {
            if granted > 0 {
                world.happened = Some(Event::FailedInPart);
            }
            let keeps = self.breaks(Rule::FailedTriesGiveBack);
            return self.end(world, process, if keeps { 0 } else { granted });
        }
        let refused = self.first_refused(process, granted);
        let behind = match self.holds(Rule::NothingBehindTheFirstRefusal) {
            true => granted & !refused,
            false => 0,
        };
        self.give_back(world, process, behind);
        let held = granted & !behind;
        world.process_mut(process).doing = Doing::Waiting { since, held };
    }

    /// The keys before the first that was refused, in the order of the wait.
    fn first_refused(&self, process: u8, granted: u8) -> u8 {
        let mut before = 0;
        while let Some(key) = self.next_of(process, before) {
            if granted >> key & 1 == 0 {
                break;
            }
            before |= 1 << key;
        }
        before
    }

    /// A waiter learns that the key it waits for is its own.
    pub(super) fn hear(&self, world: &mut World, process: u8) {
        let Doing::Waiting { mut since, held } = world.process(process).doing else {
            return;
        };
        let Some(key) = self.next_of(process, held) else {
            return;
        };
        let held = held | 1 << key;
        if self.breaks(Rule::OneDeadline) {
            since = world.now;
        }
        world.process_mut(process).doing = Doing::Waiting { since, held };
        if held == self.all_of(process) {
            self.granted(world, process, Event::GrantedAfterAWait(process));
        }
    }

    /// All was granted; some may be lost by now.
    fn granted(&self, world: &mut World, process: u8, event: Event) {
        let all = self.all_of(process);
        let is_held = each(all).all(|key| world.has_record(key, process));
        if self.holds(Rule::HeldInTheEnd) && !is_held {
            world.happened = Some(Event::LostMeanwhile);
            return self.end(world, process, all);
        }
        world.process_mut(process).doing = Doing::Has;
        world.happened = Some(event);
    }

    /// A call ends without the set, or gives it back.
    pub(super) fn end(&self, world: &mut World, process: u8, held: u8) {
        self.give_back(world, process, held);
        world.process_mut(process).doing = Doing::Nothing;
    }

    fn give_back(&self, world: &mut World, process: u8, keys: u8) {
        for key in each(keys) {
            let entry = world.key(key);
            let entries = entry.record.iter().chain(&entry.queue);
            let of_call = entries.map(|entry| entry.nonce).filter(|nonce| {
                let is_known = world.releases.contains(&(key, *nonce));
                nonce.process == process && world.is_of_call(*nonce) && !is_known
            });
            let releases: Vec<_> = of_call.map(|nonce| (key, nonce)).collect();
            world.releases.extend(releases);
        }
        world.releases.sort_unstable();
    }

    /// Whether a call that began then is over.
    pub(super) fn is_late(&self, process: u8, since: u8, now: u8) -> bool {
        self.waits(process) && now >= since + self.config.wishes[usize::from(process)].wait
    }

    /// The deadline of a call: what it asked for may still be granted, and is released behind that.
    pub(super) fn time_out(&self, world: &mut World, process: u8) {
        let now = world.now;
        match world.process(process).doing {
            Doing::Trying {
                since,
                unanswered,
                granted,
            } if self.is_late(process, since, now) => {
                self.leave_behind(world, process, unanswered);
                self.end(world, process, granted);
            }
            Doing::Waiting { since, held } if self.is_late(process, since, now) => {
                let next = self.next_of(process, held);
                let next = next.filter(|_| self.holds(Rule::AbandonedRequestsAreReleased));
                self.end(world, process, held | next.map_or(0, |key| 1 << key));
            }
            _ => return,
        }
        world.happened = Some(Event::TimedOut);
    }

    /// Requests whose caller does not wait for their answers.
    fn leave_behind(&self, world: &mut World, process: u8, keys: u8) {
        let nonce = world.of_tries(process);
        let is_dead = matches!(world.process(process).doing, Doing::Dead(_));
        let released = !is_dead && self.holds(Rule::AbandonedRequestsAreReleased);
        let strays = each(keys).map(|key| Stray {
            key,
            nonce,
            released,
        });
        world.strays.extend(strays);
        world.strays.sort_unstable();
    }

    pub(super) fn crash(&self, world: &mut World, process: u8) {
        let (now, doing) = (world.now, world.process(process).doing);
        world.crashes -= 1;
        world.process_mut(process).doing = Doing::Dead(now);
        if let Doing::Trying { unanswered, .. } = doing {
            self.leave_behind(world, process, unanswered);
        }
        let all = self.all_of(process);
        let held = doing.held(all);
        if held != 0 && held != all {
            world.happened = Some(Event::CrashedWithSome);
        }
    }

    /// A process that lives renews what it holds, and asks again for what it waits for.
    pub(super) fn renew(&self, world: &mut World, process: u8) {
        let ends = world.now + self.config.lease;
        let (doing, nonce) = (world.process(process).doing, world.of_waits(process));
        for key in each(doing.held(self.all_of(process))) {
            let is_its_own = world.has_record(key, process);
            let record = &mut world.keys[usize::from(key)].record;
            if let Some(record) = record.as_mut().filter(|_| is_its_own) {
                record.ends = ends;
            }
        }
        if !matches!(doing, Doing::Waiting { .. }) {
            return;
        }
        let tickets = world.keys.iter_mut().flat_map(|key| &mut key.queue);
        for ticket in tickets.filter(|ticket| ticket.nonce == nonce) {
            ticket.ends = ends;
        }
    }
}
