//! What can be asked of a proxy.

use std::{ops::Range, time::Duration};

/// Which connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Every one.
    All,
    /// Connections with this in their name, as set by CLIENT SETNAME or HELLO. Ringfence names its
    /// connections `rf:<client>:<lane>`.
    Named(String),
}

impl Whose {
    /// The connections of a lane: `work`, `renew`, `control`.
    pub fn lane(lane: &str) -> Self {
        Self::Named(format!(":{lane}"))
    }

    pub(super) fn is(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(part) => name.contains(part.as_str()),
        }
    }
}

/// What becomes of what goes one way. Order is always kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It is forwarded.
    Pass,
    /// Each request, or reply, is forwarded after a while out of this range.
    Delay(Range<Duration>),
    /// Nothing is read. What was sent meanwhile is forwarded when this is over.
    Hold,
    /// It is read and thrown away, and so is, for the life of the connection, everything after it: a
    /// stream with a gap would answer one request with the reply to another.
    Lose,
}

/// What happens to a connection, once, when the server has answered a certain request: so that
/// request was applied.
#[derive(Clone, Debug)]
pub struct Trap {
    pub(super) whose: Whose,
    pub(super) words: Vec<String>,
    pub(super) nth: u64,
    pub(super) deed: Deed,
}

/// What a trap does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Resets the connection, both ways, after this many bytes of the reply.
    Cut {
        /// 0: before the reply; more than it has: behind it.
        reply_bytes: usize,
    },
    /// Closes the server's side; the client's stays open and silent.
    HalfOpen,
    /// Throws the reply away, and all that follow.
    LoseReplies,
}

impl Trap {
    /// Does `deed` at the next request of one of these connections.
    pub fn new(whose: Whose, deed: Deed) -> Self {
        Self {
            whose,
            words: Vec::new(),
            nth: 1,
            deed,
        }
    }

    /// Counts only requests that begin with `words`: `["FCALL", function]`. Letters of either case.
    #[must_use]
    pub fn command(mut self, words: &[&str]) -> Self {
        self.words = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// At the `nth` such request from when the trap is set, over all these connections together;
    /// from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    pub(super) fn is_for(&self, name: &str, words: &[&[u8]]) -> bool {
        let begins = words.len() >= self.words.len();
        let mut pairs = words.iter().zip(&self.words);
        begins
            && self.whose.is(name)
            && pairs.all(|(word, own)| word.eq_ignore_ascii_case(own.as_bytes()))
    }
}

/// What went through, whole requests and replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests that came from clients.
    pub requests_read: u64,
    /// Requests forwarded.
    pub requests: u64,
    /// Replies forwarded.
    pub replies: u64,
    /// Requests thrown away.
    pub requests_lost: u64,
    /// Replies thrown away.
    pub replies_lost: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.requests_read += other.requests_read;
        self.requests += other.requests;
        self.replies += other.replies;
        self.requests_lost += other.requests_lost;
        self.replies_lost += other.replies_lost;
    }
}
