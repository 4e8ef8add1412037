//! Requests and answers.

use super::{Nonce, Token};

/// A request, or its answer.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// For which acquisition.
    pub nonce: Nonce,
    /// The rank.
    pub rank: u8,
    /// The shard.
    pub shard: u8,
    /// The request.
    pub ask: Ask,
    /// The shard's answer, if it has processed the request.
    pub answer: Option<Answer>,
    /// How often its nonce had been given back when the request was sent.
    pub round: u8,
    /// Ticks since the request was sent, up to the lease.
    pub age: u8,
}

/// Requests.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Grant it.
    Acquire {
        /// The released nonce whose record it replaces.
        replaces: Option<Nonce>,
    },
    /// Extend the record, and confirm this token; in grace put it back.
    Renew(Token),
    /// Extend the record as it is; in grace put it back with this token.
    Extend(Token),
    /// The same, but without a record write one.
    Install(Token),
    /// Take the record over from the shard that the rank moves from.
    Adopt {
        /// The record's token there.
        own: Token,
        /// The token to confirm.
        token: Token,
    },
    /// Raise the shard's tokens, whatever the record (broken rule).
    WriteBack(Token),
    /// Give the record up.
    Release,
}

/// The shard did it. A refusal is no message: nothing comes of it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// The record's token, if it counts there.
    pub token: Option<Token>,
    /// The nonce that released the lock before this grant, at the lead.
    pub released: Option<Nonce>,
}
