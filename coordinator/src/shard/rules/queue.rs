//! The waiters for one key: those that are preferred, then the others; each first come, first served.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use super::end::End;
use crate::{
    clock::Instant,
    ids::Nonce,
    limits::{COUNTED_MAX, WAITERS_MAX},
    name::Label,
    shard::{LockMode, Ticket},
};

/// An acquisition that waits, by its latest request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) nonce: Nonce,
    pub(crate) label: Label,
    pub(crate) mode: LockMode,
    /// Goes before waiters that are not.
    pub(crate) preferred: bool,
    pub(crate) tokens: u32,
    pub(crate) ticket: Ticket,
    /// The last millisecond that it waits, unless it asks again.
    pub(crate) ends: End,
}

/// What changes when a waiter asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) sent: Instant,
    pub(crate) ends: End,
}

/// The tickets to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToRead {
    Nothing,
    /// Those of the first waiters, until one that waits.
    First,
    All,
}

/// Stays that were read. `None`: there is none.
pub(crate) type Stays = HashMap<Nonce, Option<Stay>>;

impl Waiter {
    fn stay(&self) -> Stay {
        Stay {
            sent: self.ticket.sent,
            ends: self.ends,
        }
    }

    /// Puts a stay in, unless it is an earlier one.
    fn put_stay(&mut self, Stay { sent, ends }: Stay) {
        self.ticket.sent = self.ticket.sent.max(sent);
        self.ends = self.ends.max(ends);
    }

    /// Whether it asked in the first half of its stay: nothing later is of interest.
    fn is_fresh(&self, now_ms: u64) -> bool {
        self.ends.at_ms.saturating_sub(now_ms) > self.ends.length_ms / 2
    }

    /// Whether it is `known`, and did not ask again.
    fn is_as(&self, known: &Self) -> bool {
        self.ticket == known.ticket && self.ends.is_within(known.ends)
    }
}

/// The place of a waiter that asked, or asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of waiters before it.
    pub(crate) position: u32,
    /// It was not in the queue before.
    pub(crate) new: bool,
}

/// The tickets of one key, at most [`WAITERS_MAX`].
///
/// An ended ticket is dropped when it comes to the head, or when there is no room. Until then it counts. Every operation
/// is O(log n), except that giving up closes a gap in an array, and that a preferred waiter makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Numbers rise, so bisection finds a known one. Those of preferred waiters are negative.
    order: VecDeque<(i64, Nonce)>,
    waiters: HashMap<Nonce, (i64, Waiter)>,
    last_number: i64,
    /// The latest end of a waiter, which may have left since.
    ends: End,
    /// Waiters of whom it is not known whether they asked again: they count as waiting.
    unread: HashSet<Nonce>,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The queue of `waiters`, in their order; the latest end of a waiter was `ends`.
    pub(super) fn of(waiters: Vec<Waiter>, ends: End) -> Self {
        let numbered = (1..).zip(waiters);
        let numbered = numbered.map(|(number, its)| (place_of(number, its.preferred), its));
        let waiters: Vec<(i64, Waiter)> = numbered.collect();
        let order = waiters.iter().map(|(number, its)| (*number, its.nonce));
        Self {
            order: order.collect(),
            last_number: waiters.len() as i64,
            waiters: waiters.into_iter().map(|its| (its.1.nonce, its)).collect(),
            ends,
            unread: HashSet::new(),
        }
    }

    /// The latest end of a waiter, which may have left since.
    pub(super) fn ends(&self) -> End {
        self.ends
    }

    /// Whether each of its waiters is one of `before`, as it was.
    pub(super) fn is_left_of(&self, before: &Self) -> bool {
        self.ends.is_within(before.ends)
            && self.waiters.iter().all(|(nonce, (_, waiter))| {
                let known = before.waiters.get(nonce);
                known.is_some_and(|(_, known)| waiter.is_as(known))
            })
    }

    /// Limits every end, as [`End::limit`] does. The latest one tells whether there is any to limit.
    pub(super) fn limit_ends(&mut self, now_ms: u64, slack_ms: u64) {
        if self.ends.limit(now_ms, slack_ms) {
            for (_, waiter) in self.waiters.values_mut() {
                waiter.ends.limit(now_ms, slack_ms);
            }
        }
    }

    /// The waiters of whom it is to be read whether they asked again: until the first that waits, or of `all`. `stays` are
    /// those that were read.
    pub(crate) fn unread(
        &self,
        stays: &Stays,
        all: bool,
        now_ms: u64,
    ) -> impl Iterator<Item = Nonce> {
        let is_known_to_wait = move |waiter: &Waiter| {
            let stay = stays.get(&waiter.nonce);
            let ends = stay.map(|stay| stay.map_or(waiter.ends, |stay| stay.ends.max(waiter.ends)));
            waiter.is_fresh(now_ms) || ends.is_some_and(|ends| ends.at_ms >= now_ms)
        };
        let waiters = self.order.iter().map(|(_, nonce)| &self.waiters[nonce].1);
        let looked_at = waiters.take_while(move |waiter| all || !is_known_to_wait(waiter));
        let nonces = looked_at.map(|waiter| waiter.nonce);
        nonces.filter(|nonce| !stays.contains_key(nonce))
    }

    /// Puts the stays in that were read. Returns whether the latest end is a later one.
    pub(crate) fn put_stays(&mut self, stays: &Stays) -> bool {
        let before = self.ends;
        for (nonce, (_, waiter)) in &mut self.waiters {
            match stays.get(nonce) {
                Some(stay) => stay.iter().for_each(|stay| waiter.put_stay(*stay)),
                None => drop(self.unread.insert(*nonce)),
            }
            self.ends = self.ends.max(waiter.ends);
        }
        self.ends != before
    }

    /// The stay that is not as in `before`, if that is all that changed.
    pub(crate) fn changed_stay(&self, before: &Self) -> Option<(Nonce, Stay)> {
        let is_same = |nonce: &Nonce, waiter: &Waiter| {
            let known = before.waiters.get(nonce);
            known.is_some_and(|(_, known)| known == waiter)
        };
        let waiters = self
            .waiters
            .iter()
            .map(|(nonce, (_, waiter))| (nonce, waiter));
        let mut changed = waiters.filter(|(nonce, waiter)| !is_same(nonce, waiter));
        let (nonce, waiter) = changed.next()?;
        let (_, known) = before.waiters.get(nonce)?;
        let (stay, mut again) = (waiter.stay(), known.clone());
        (again.ticket.sent, again.ends) = (stay.sent, stay.ends);
        let is_all = again == *waiter && changed.next().is_none() && self.order == before.order;
        is_all.then_some((*nonce, stay))
    }

    pub(super) fn has(&self, nonce: Nonce) -> bool {
        self.waiters.contains_key(&nonce)
    }

    pub(super) fn is_full(&self) -> bool {
        self.order.len() >= WAITERS_MAX as usize
    }

    /// The number of waiters, including ended ones.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The callers of all waiters, including ended ones; of many waiters, one each.
    pub(crate) fn callers(&self) -> u32 {
        if self.len() > COUNTED_MAX {
            return self.len() as u32;
        }
        let waiters = self.waiters.values();
        let callers = waiters.map(|(_, waiter)| waiter.ticket.callers);
        callers.fold(0, u32::saturating_add)
    }

    /// The waiters that have not ended, in order.
    pub(crate) fn live(&self, now_ms: u64) -> impl Iterator<Item = &Waiter> {
        let waiters = self.order.iter().map(|(_, nonce)| &self.waiters[nonce].1);
        waiters.filter(move |waiter| self.waits(waiter, now_ms))
    }

    fn waits(&self, waiter: &Waiter, now_ms: u64) -> bool {
        waiter.ends.at_ms >= now_ms || self.unread.contains(&waiter.nonce)
    }

    /// Whether no waiter is left, or all have ended. Then the queue does not count.
    pub(crate) fn has_ended(&self, now_ms: u64) -> bool {
        self.is_empty() || (now_ms > self.ends.at_ms && self.unread.is_empty())
    }

    /// Puts `waiter` at the end, if it is preferred at the end of those that are. A waiter that is in the queue keeps its place, and the later `sent` of the two. `None`:
    /// there is no room.
    pub(crate) fn enter(&mut self, mut waiter: Waiter, now_ms: u64) -> Option<Place> {
        let (nonce, ends) = (waiter.nonce, waiter.ends);
        self.unread.remove(&nonce);
        let new = match self.waiters.get_mut(&nonce) {
            Some((_, known)) => {
                waiter.ticket.sent = waiter.ticket.sent.max(known.ticket.sent);
                waiter.preferred = known.preferred;
                *known = waiter;
                false
            }
            None => {
                self.make_room(now_ms)?;
                self.last_number += 1;
                let number = place_of(self.last_number, waiter.preferred);
                let at = self.order.partition_point(|(other, _)| *other < number);
                self.order.insert(at, (number, nonce));
                self.waiters.insert(nonce, (number, waiter));
                true
            }
        };
        self.ends = self.ends.max(ends);
        let position = self.position(nonce)? as u32;
        Some(Place { position, new })
    }

    /// Removes `nonce`.
    pub(crate) fn remove(&mut self, nonce: Nonce) {
        if let Some(position) = self.position(nonce) {
            self.order.remove(position);
            self.waiters.remove(&nonce);
            self.unread.remove(&nonce);
        }
    }

    /// The first waiter that has not ended. Ended ones before it are dropped.
    pub(crate) fn first(&mut self, now_ms: u64) -> Option<&Waiter> {
        while let Some((_, nonce)) = self.order.front() {
            if self.waits(&self.waiters[nonce].1, now_ms) {
                break;
            }
            self.waiters.remove(nonce);
            self.order.pop_front();
        }
        let (_, nonce) = self.order.front()?;
        self.waiters.get(nonce).map(|(_, waiter)| waiter)
    }

    fn make_room(&mut self, now_ms: u64) -> Option<()> {
        if self.is_full() {
            let unread = &self.unread;
            self.waiters
                .retain(|nonce, (_, waiter)| waiter.ends.at_ms >= now_ms || unread.contains(nonce));
            let waiters = &self.waiters;
            self.order.retain(|(_, nonce)| waiters.contains_key(nonce));
        }
        (!self.is_full()).then_some(())
    }

    fn position(&self, nonce: Nonce) -> Option<usize> {
        let (number, _) = self.waiters.get(&nonce)?;
        self.order
            .binary_search_by_key(number, |(number, _)| *number)
            .ok()
    }
}

/// The number in the order of a queue of the waiter that came as the `number`th.
fn place_of(number: i64, preferred: bool) -> i64 {
    if preferred { i64::MIN + number } else { number }
}
