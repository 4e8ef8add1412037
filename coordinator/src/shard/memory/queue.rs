//! The waiters for one key, first come, first served.

use std::{collections::VecDeque, ops::Range};

use hashbrown::HashMap;

use crate::{ids::Nonce, limits::WAITERS_MAX, name::Label, shard::Ticket};

/// How a waiter came along with the slot. All places of one kind go before those of the next kind,
/// and all of them before those of newcomers, which begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// By the proof of being first at the former shard: before the waiters in the list.
    Proof,
    /// In the list of what the former shard has left.
    List,
}

impl Along {
    fn places(self) -> Range<i64> {
        match self {
            Self::Proof => i64::MIN..i64::MIN / 2,
            Self::List => i64::MIN / 2..0,
        }
    }
}

/// An acquisition that waits, as its latest request had it.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) nonce: Nonce,
    pub(super) label: Label,
    pub(super) tokens: u32,
    pub(super) ticket: Ticket,
    /// The last millisecond it waits, by the shard's clock, unless it asks again.
    pub(super) ends_ms: u64,
}

/// The place of a waiter that came, or came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    /// How many are before.
    pub(super) position: u32,
    /// It was not there before.
    pub(super) new: bool,
}

/// The tickets of one key, at most [`WAITERS_MAX`].
///
/// One that has ended is dropped when it comes to the head, or when there is no room: until then it
/// counts. Everything is O(log n), but giving up and moving with a slot, which close or make a gap in an
/// array.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Places rise, so a known one is found by bisection. Two lists may give the same place to two
    /// waiters; then their nonces decide.
    order: VecDeque<(i64, Nonce)>,
    waiters: HashMap<Nonce, (i64, Waiter)>,
    /// Of newcomers, from 1 on.
    last_place: i64,
    /// When the last that came ends, be it still there or not.
    ends_ms: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many there are, ended ones among them.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Those that have not ended, in order.
    pub(super) fn live(&self, now_ms: u64) -> impl Iterator<Item = &Waiter> {
        let waiters = self.order.iter().map(|(_, nonce)| &self.waiters[nonce].1);
        waiters.filter(move |waiter| waiter.ends_ms >= now_ms)
    }

    /// Whether no waiter is left, or all have ended: then the contents do not count.
    pub(super) fn has_ended(&self, now_ms: u64) -> bool {
        self.is_empty() || now_ms > self.ends_ms
    }

    /// Puts `waiter` at the end; or renews it where it is, with the later `sent` of the two. `None`:
    /// there is no room.
    pub(super) fn enter(&mut self, waiter: Waiter, now_ms: u64) -> Option<Stand> {
        let nonce = waiter.nonce;
        let known = self.waiters.get(&nonce).map(|(place, _)| *place);
        let place = match known {
            Some(place) => place,
            None => {
                self.make_room(now_ms)?;
                self.last_place += 1;
                self.last_place
            }
        };
        self.put(place, waiter);
        let position = self.position(nonce)? as u32;
        let new = known.is_none();
        Some(Stand { position, new })
    }

    /// Adds `waiter`, which came `along` with its slot, before all newcomers, and behind those that
    /// came along before in the same way; with the later `sent` of the two, if it is known here. A
    /// waiter that came along before keeps its place. It is left out if there is no room.
    pub(super) fn carry(&mut self, waiter: Waiter, along: Along, now_ms: u64) {
        let known = self.waiters.get(&waiter.nonce).map(|(place, _)| *place);
        if known.is_some() || self.make_room(now_ms).is_some() {
            let kept = known.filter(|place| *place < 0);
            self.put(kept.unwrap_or_else(|| self.behind_all(along)), waiter);
        }
    }

    /// The place behind the last that came `along` in the same way.
    fn behind_all(&self, along: Along) -> i64 {
        let Range { start, end } = along.places();
        let before = self.order.partition_point(|(place, _)| *place < end);
        let last = before.checked_sub(1).map(|at| self.order[at].0);
        let last = last.filter(|last| *last >= start);
        last.map_or(start, |last| last + 1)
    }

    /// Whether `nonce` is in it.
    pub(super) fn has(&self, nonce: Nonce) -> bool {
        self.waiters.contains_key(&nonce)
    }

    /// Whether the first waiter that has not ended came along with its slot; ended ones before it
    /// are dropped.
    pub(super) fn first_came_along(&mut self, now_ms: u64) -> bool {
        self.first(now_ms);
        self.order.front().is_some_and(|(place, _)| *place < 0)
    }

    fn put(&mut self, place: i64, mut waiter: Waiter) {
        let nonce = waiter.nonce;
        self.ends_ms = self.ends_ms.max(waiter.ends_ms);
        if let Some((its_place, known)) = self.waiters.get(&nonce) {
            waiter.ticket.sent = waiter.ticket.sent.max(known.ticket.sent);
            if *its_place != place {
                self.remove(nonce);
            }
        }
        if self.waiters.insert(nonce, (place, waiter)).is_none() {
            let at = self.order.partition_point(|other| *other < (place, nonce));
            self.order.insert(at, (place, nonce));
        }
    }

    /// Takes `nonce` out, wherever it is.
    pub(super) fn remove(&mut self, nonce: Nonce) -> Option<Waiter> {
        let position = self.position(nonce)?;
        self.order.remove(position);
        let (_, waiter) = self.waiters.remove(&nonce)?;
        Some(waiter)
    }

    /// The first waiter that has not ended; ended ones before it are dropped.
    pub(super) fn first(&mut self, now_ms: u64) -> Option<&Waiter> {
        while let Some((_, nonce)) = self.order.front() {
            if self.waiters[nonce].1.ends_ms >= now_ms {
                break;
            }
            self.waiters.remove(nonce);
            self.order.pop_front();
        }
        let (_, nonce) = self.order.front()?;
        self.waiters.get(nonce).map(|(_, waiter)| waiter)
    }

    fn make_room(&mut self, now_ms: u64) -> Option<()> {
        if self.order.len() >= WAITERS_MAX as usize {
            self.waiters
                .retain(|_, (_, waiter)| waiter.ends_ms >= now_ms);
            let waiters = &self.waiters;
            self.order.retain(|(_, nonce)| waiters.contains_key(nonce));
        }
        (self.order.len() < WAITERS_MAX as usize).then_some(())
    }

    fn position(&self, nonce: Nonce) -> Option<usize> {
        let (place, _) = self.waiters.get(&nonce)?;
        self.order.binary_search(&(*place, nonce)).ok()
    }
}
