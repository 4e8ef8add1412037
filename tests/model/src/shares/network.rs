//! Messages under way. Any of them may be delayed without bound, which is also how one is lost, and
//! they overtake each other.

use std::collections::BTreeSet;

use super::{Nonce, Terms, Token};

/// Every message under way.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Network {
    /// Sorted; equal ones count.
    pub(super) requests: Vec<Request>,
    pub(super) turns: BTreeSet<Turn>,
}

/// A request of a process to a shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Its acquisition.
    pub nonce: Nonce,
    /// The shard.
    pub shard: u8,
    /// The verb.
    pub ask: Ask,
    /// Ticks since it was sent, up to the lease.
    pub age: u8,
}

/// The verbs.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Grant shares, or keep a place in the queue.
    Acquire {
        /// The shares, and of how many.
        terms: Terms,
        /// The shares left at A, by A's own answer.
        proof: Option<u8>,
    },
    /// Extend the shares, if need be fewer; in grace put them back, with this token.
    Renew {
        /// Its token.
        token: Token,
        /// Its shares from now on, at most.
        shares: u8,
    },
    /// Take the shares over from the shard that the slot moves from.
    Adopt {
        /// Its token.
        token: Token,
        /// Its shares.
        shares: u8,
    },
    /// The shares are at B: take them away, if the slot is still sealed.
    Remove,
    /// Give the shares or the ticket up.
    Release,
}

/// The late answer to an acquire that was queued.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Granted to.
    pub nonce: Nonce,
    /// The shard that granted.
    pub shard: u8,
    /// The token.
    pub token: Token,
    /// The age of the request that it answers.
    pub age: u8,
}

impl Network {
    pub(super) fn send(&mut self, request: Request) {
        let place = self.requests.partition_point(|other| *other < request);
        self.requests.insert(place, request);
    }

    pub(super) fn take(&mut self, request: &Request) {
        if let Ok(place) = self.requests.binary_search(request) {
            self.requests.remove(place);
        }
    }

    /// Whether anything but its release or removal is under way for `nonce` to `shard`.
    pub(super) fn is_asked(&self, nonce: Nonce, shard: u8) -> bool {
        (self.requests.iter()).any(|request| {
            request.nonce == nonce && request.shard == shard && !request.ask.takes_away()
        })
    }

    /// Whether its release is under way for `nonce` to `shard`.
    pub(super) fn is_released(&self, nonce: Nonce, shard: u8) -> bool {
        (self.requests.iter()).any(|request| {
            request.nonce == nonce && request.shard == shard && request.ask == Ask::Release
        })
    }

    /// A tick: everything is older, up to `age_max`, above which it makes no difference.
    pub(super) fn age(&mut self, age_max: u8) {
        for request in &mut self.requests {
            if !request.ask.takes_away() {
                request.age = age_max.min(request.age + 1);
            }
        }
        self.requests.sort();
        self.turns = (self.turns.iter())
            .map(|turn| Turn {
                age: age_max.min(turn.age + 1),
                ..*turn
            })
            .collect();
    }
}

impl Ask {
    /// Whether it only ever removes; its age is never read.
    pub(super) fn takes_away(self) -> bool {
        matches!(self, Self::Remove | Self::Release)
    }
}
