//! Messages under way. Any of them may be delayed without bound, which is also how one is lost;
//! requests and replies overtake each other; pushes are repeated without bound.

use std::collections::BTreeSet;

use super::{Nonce, Token, state::Block};

/// Every message under way.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Network {
    /// To the shard, in its present life: a connection does not outlive it. Sorted; equal ones
    /// count.
    pub(super) requests: Vec<Request>,
    /// A repeated reply changes nothing, so one of each is enough.
    pub(super) replies: BTreeSet<Reply>,
    /// Delivered any number of times.
    pub(super) pushes: BTreeSet<Push>,
}

/// What a process asks the shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// For which acquisition.
    pub nonce: Nonce,
    /// The verb.
    pub ask: Ask,
    /// Ticks since it was sent, up to the lease.
    pub age: u8,
}

/// The verbs.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Grant it, or queue it; a re-check is the same again.
    Acquire,
    /// What is left of a re-check that found another holder: its ticket, if it is in the queue.
    Stay,
    /// Extend the record; in grace put it back, with this token.
    Renew(Token),
    /// More tokens; the guard's n-th such request.
    Reserve(u8),
    /// Give the record and the ticket up.
    Release,
}

/// What the shard answers, if the process has any use for it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reply {
    /// The request's.
    pub nonce: Nonce,
    /// Ticks since that very request was sent, up to the lease.
    pub age: u8,
    /// The answer.
    pub answer: Answer,
}

/// Answers.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// To acquire.
    Granted(Grant),
    /// To acquire: queued.
    Held,
    /// To renew: extended.
    Renewed {
        /// Another process waits.
        contended: bool,
    },
    /// To renew: the record is another's, or gone.
    Lost,
    /// To the n-th reserve; without a block, the record is not that nonce's.
    Reserved {
        /// n.
        number: u8,
        /// The tokens.
        block: Option<Block>,
        /// Another process waits.
        contended: bool,
    },
}

/// The lock, with its block of tokens.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub(super) token: Token,
    /// The counter of the block's last token.
    pub(super) last: u8,
    pub(super) contended: bool,
}

/// What the shard tells a process unasked.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Push {
    /// The lock is yours.
    Turn {
        /// The nonce.
        nonce: Nonce,
        /// With what.
        grant: Grant,
        /// Of the request it is the late answer to.
        age: u8,
    },
    /// Another process waits for what this nonce holds.
    Contended(Nonce),
}

impl Network {
    pub(super) fn send(&mut self, nonce: Nonce, ask: Ask) {
        self.put(Request { nonce, ask, age: 0 });
    }

    /// A part of a request that was served goes on.
    pub(super) fn put(&mut self, request: Request) {
        let place = self.requests.partition_point(|other| *other < request);
        self.requests.insert(place, request);
    }

    pub(super) fn take(&mut self, request: &Request) {
        if let Ok(place) = self.requests.binary_search(request) {
            self.requests.remove(place);
        }
    }

    /// Requests for `nonce`, its release apart.
    pub(super) fn asks(&self, nonce: Nonce) -> impl Iterator<Item = Ask> {
        self.requests
            .iter()
            .filter(move |request| request.nonce == nonce && request.ask != Ask::Release)
            .map(|request| request.ask)
    }

    /// Answers to `nonce`.
    pub(super) fn answers(&self, nonce: Nonce) -> impl Iterator<Item = Answer> {
        self.replies
            .iter()
            .filter(move |reply| reply.nonce == nonce)
            .map(|reply| reply.answer)
    }

    /// Whether anything is under way for `nonce`, in either direction; pushes apart.
    pub(super) fn is_busy(&self, nonce: Nonce) -> bool {
        self.asks(nonce).next().is_some() || self.answers(nonce).next().is_some()
    }

    /// A tick: everything is older, up to `age_max`, above which it makes no difference.
    pub(super) fn age(&mut self, age_max: u8) {
        let older = |age: u8| age_max.min(age + 1);
        for request in &mut self.requests {
            if request.ask != Ask::Release {
                request.age = older(request.age);
            }
        }
        self.requests.sort();
        self.replies = (self.replies.iter())
            .map(|reply| Reply {
                age: older(reply.age),
                ..*reply
            })
            .collect();
        self.pushes = (self.pushes.iter())
            .map(|push| match *push {
                Push::Turn { nonce, grant, age } => Push::Turn {
                    nonce,
                    grant,
                    age: older(age),
                },
                Push::Contended(nonce) => Push::Contended(nonce),
            })
            .collect();
    }
}
