//! Messages under way. Any of them may be delayed without bound, which is also how one is lost, and
//! they overtake each other.

use std::collections::BTreeSet;

use super::{Nonce, Token};

/// Every message under way.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Network {
    /// Sorted; equal ones count.
    pub(super) requests: Vec<Request>,
    /// A repeated reply changes nothing, so one of each is enough.
    pub(super) replies: BTreeSet<Reply>,
}

/// What a process asks a shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// For which acquisition.
    pub nonce: Nonce,
    /// The shard.
    pub shard: u8,
    /// In which of its lives.
    pub life: u8,
    /// The verb.
    pub ask: Ask,
    /// Ticks since it was sent, up to the lease.
    pub age: u8,
}

/// The verbs.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Grant it.
    Acquire {
        /// The epoch of the move for which A proved that the key is free there.
        proof: Option<u8>,
    },
    /// Extend the record; in grace put it back, with this token.
    Renew(Token),
    /// Take the record over from the shard that the slot moves from.
    Adopt {
        /// The record's.
        token: Token,
        /// Of the move.
        epoch: u8,
    },
    /// The record is at the new shard: take it away, if the slot is still sealed by this move.
    Remove {
        /// Of the move.
        epoch: u8,
    },
    /// Give the record up.
    Release,
}

/// What the shard answers.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reply {
    /// What it answers, as old as it is.
    pub to: Request,
    /// The answer.
    pub answer: Answer,
}

/// Answers.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// To acquire.
    Granted(Token),
    /// To acquire: the key is free here, and the slot moves there.
    Absent {
        /// Of the move.
        epoch: u8,
        /// Where the slot moves.
        to: u8,
    },
    /// To renew: extended.
    Renewed {
        /// Where the slot moves, and the move's epoch.
        moving: Option<(u8, u8)>,
    },
    /// To renew: the record is another's, or gone.
    Lost,
    /// To adopt.
    Adopted,
    /// Held, grace, moved, unarmed, not here: nothing comes of it.
    Refused,
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

    /// Whether anything but its release is under way for `nonce` to `shard`.
    pub(super) fn is_asked(&self, nonce: Nonce, shard: u8) -> bool {
        (self.requests.iter()).any(|request| {
            request.nonce == nonce && request.shard == shard && request.ask != Ask::Release
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
            request.grow(age_max);
        }
        self.requests.sort();
        self.replies = (self.replies.iter())
            .map(|reply| {
                let mut reply = *reply;
                reply.to.grow(age_max);
                reply
            })
            .collect();
    }
}

impl Request {
    fn grow(&mut self, age_max: u8) {
        if !matches!(self.ask, Ask::Release | Ask::Remove { .. }) {
            self.age = age_max.min(self.age + 1);
        }
    }
}
