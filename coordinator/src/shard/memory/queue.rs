//! The waiters for one key, first come, first served.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::{ids::Nonce, limits::WAITERS_MAX, name::Label, shard::Ticket};

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
/// counts. Everything is O(log n), but giving up, which closes a gap in an array.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Places rise, so a known one is found by bisection.
    order: VecDeque<(u64, Nonce)>,
    waiters: HashMap<Nonce, (u64, Waiter)>,
    last_place: u64,
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
    pub(super) fn enter(&mut self, mut waiter: Waiter, now_ms: u64) -> Option<Stand> {
        let (nonce, ends_ms) = (waiter.nonce, waiter.ends_ms);
        let new = match self.waiters.get_mut(&nonce) {
            Some((_, known)) => {
                waiter.ticket.sent = waiter.ticket.sent.max(known.ticket.sent);
                *known = waiter;
                false
            }
            None => {
                self.make_room(now_ms)?;
                self.last_place += 1;
                self.order.push_back((self.last_place, nonce));
                self.waiters.insert(nonce, (self.last_place, waiter));
                true
            }
        };
        self.ends_ms = self.ends_ms.max(ends_ms);
        let position = self.position(nonce)? as u32;
        Some(Stand { position, new })
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
        self.order
            .binary_search_by_key(place, |(place, _)| *place)
            .ok()
    }
}
