//! The waiters: their tickets, their turns, and how they lose their places.

use rand::{RngExt, seq::SliceRandom};
use ringfence_chaos::history::{Answer, Deed, Kind, Phase};

use super::{Held, Lane, MS, Reference, Waiter};

/// The longest that anybody waits, before the lock is held once more.
const PATIENCE: u64 = 8000 * MS;
/// How long a turn lasts of which nothing is heard.
const CLAIM: u64 = 3000 * MS;

impl Reference {
    /// The first ticket's turn comes as soon as the lock is free: a late answer to its last request.
    pub(super) fn have_its_turn(&mut self, lane: &mut Lane) -> Held {
        let first = lane.queue.remove(0);
        let told = lane.free + self.between(1, 50) * MS;
        let mut held = self.granted(first.process, first.deed, first.sent, told, true);
        held.now += self.between(1, 20) * MS;
        self.renewed(&mut held, told, Answer::Renewed);
        held
    }

    /// While the lock is held, until `lane.free`, newcomers come and queue, and waiters ask again.
    pub(super) fn wait(&mut self, lane: &mut Lane, since: u64) {
        let mut coming: Vec<u64> = Vec::new();
        if lane.queue.len() < 2 && lane.free > since + 100 * MS {
            for _ in 0..self.rng.random_range(0..3) {
                coming.push(self.rng.random_range(since..lane.free - 60 * MS));
            }
        }
        coming.sort_unstable();
        let silent = self.falls_silent(lane);
        for asked in coming {
            let process = self.number() as u32;
            let nonce = format!("nonce:{}", self.number());
            let deed = self.ask_for(lane, process, asked, nonce);
            let mut waiter = Waiter {
                process,
                deed,
                asked,
                sent: asked,
                next: asked,
            };
            self.recheck(&mut waiter, asked + 1);
            lane.queue.push(waiter);
        }
        if let Some(mut back) = silent {
            back.next = lane.free - 200 * MS;
            lane.queue.push(back);
        }
        let mut queue = std::mem::take(&mut lane.queue);
        for waiter in &mut queue {
            self.recheck(waiter, lane.free - 50 * MS);
        }
        for waiter in queue {
            // Nobody waits for ever, and some not for long.
            if lane.free - waiter.asked > PATIENCE || self.rng.random_bool(0.1) {
                self.give_up(&waiter, lane.free - MS);
            } else {
                lane.queue.push(waiter);
            }
        }
    }

    /// Perhaps nothing is heard of the first waiter until its turn is over: it lost its place.
    fn falls_silent(&mut self, lane: &mut Lane) -> Option<Waiter> {
        if lane.queue.is_empty() || self.rng.random_bool(0.8) {
            return None;
        }
        lane.free += CLAIM;
        Some(lane.queue.remove(0))
    }

    /// Asks again until `until`.
    fn recheck(&mut self, waiter: &mut Waiter, until: u64) {
        while waiter.next < until {
            waiter.sent = waiter.next;
            let ask = Deed {
                op: self.number(),
                kind: Kind::Ask,
                phase: Phase::Ok,
                ..waiter.deed.clone()
            };
            self.push(waiter.process, waiter.sent, ask.clone());
            let queued = Deed {
                kind: Kind::Queue,
                sent_ns: Some(waiter.sent),
                answer: Some(Answer::Held),
                ..ask
            };
            let judged = waiter.sent + self.between(1, 40) * MS;
            self.push(waiter.process, judged, queued);
            waiter.next = waiter.sent + self.between(400, 660) * MS;
        }
    }

    fn give_up(&mut self, waiter: &Waiter, at: u64) {
        let over = Deed {
            op: self.number(),
            kind: Kind::GiveUp,
            phase: Phase::Ok,
            ..waiter.deed.clone()
        };
        self.push(waiter.process, at, over);
        let refused = Deed {
            phase: Phase::Fail,
            answer: Some(Answer::Held),
            nonce: None,
            ..waiter.deed.clone()
        };
        self.push(waiter.process, at.max(waiter.asked), refused);
    }

    /// Nobody waits any more.
    pub(super) fn leave(&mut self, lane: &mut Lane) {
        for waiter in std::mem::take(&mut lane.queue) {
            self.give_up(&waiter, lane.free);
        }
    }

    /// The queue vanished: its waiters come again, in any order, and one more behind them all.
    pub(super) fn queue_anew(&mut self, lane: &mut Lane) {
        let mut queue = std::mem::take(&mut lane.queue);
        queue.shuffle(&mut self.rng);
        let mut at = lane.free;
        for waiter in &mut queue {
            (waiter.next, at) = (at, at + 41 * MS);
            self.recheck(waiter, at);
        }
        lane.queue = queue;
        lane.free = at + 60 * MS;
    }
}
