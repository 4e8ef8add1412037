//! Holders and waiters: for people and tools, never for a decision.

use std::{fmt, time::Duration};

use crate::{
    ids::{Nonce, Token},
    name::{Label, LockKey, Namespace},
    shard::{LockKind, LockMode},
};

/// Asks for a key's holder and waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspect(pub LockKey);

/// What there is to know of one key at its shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The holder, from the record of its grant. Of several: the one with the least token.
    pub holder: Option<Holder>,
    /// The other holders of a semaphore, or of a read-write lock, by their tokens.
    pub others: Vec<Holder>,
    /// The waiting processes, in the order in which they will get the lock. Those that have not asked again in time are
    /// left out.
    pub waiters: Vec<QueuedWaiter>,
}

/// A live record.
///
/// It describes a whole grant: a process that hands the lock on among its own tasks gives each the
/// next token, which the shard does not see. The present holder has one of the `tokens` from
/// `token` on, and may have another label than the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The acquisition.
    pub nonce: Nonce,
    /// The label of the acquisition.
    pub label: Label,
    /// The first of its tokens.
    pub token: Token,
    /// How many there are, in a row: at least 1.
    pub tokens: u32,
    /// The kind of the lock.
    pub kind: LockKind,
    /// How many shares it takes: 1 of a mutex.
    pub shares: u32,
    /// How much of the lease is left.
    pub remaining: Duration,
    /// How long the process has had it, by the shard's clock. A lock that was put back after a restart of the shard, or that
    /// moved to another shard, counts from then.
    pub held_for: Duration,
}

impl Holder {
    /// The last of its tokens.
    pub fn last_token(&self) -> Token {
        Token::from_number(self.token.get() + u64::from(self.tokens.saturating_sub(1)))
    }

    /// Its part of a semaphore or of a read-write lock, for people.
    pub fn part(&self) -> Option<String> {
        match (self.kind, self.shares) {
            (LockKind::Mutex, _) => None,
            (LockKind::Semaphore, 1) => Some("1 permit".into()),
            (LockKind::Semaphore, permits) => Some(format!("{permits} permits")),
            (LockKind::ReadWrite, 1) => Some("reader".into()),
            (LockKind::ReadWrite, _) => Some("writer".into()),
        }
    }
}

/// A live ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedWaiter {
    /// The acquisition.
    pub nonce: Nonce,
    /// The label of the acquisition.
    pub label: Label,
    /// What it asks for.
    pub mode: LockMode,
    /// How many callers of the process wait, as it last told.
    pub callers: u32,
}

impl QueuedWaiter {
    /// The part of a semaphore or of a read-write lock that it asks for, for people.
    pub fn part(&self) -> Option<String> {
        match self.mode {
            LockMode::Exclusive => None,
            LockMode::Permits { count, capacity } => Some(format!("{count} of {capacity} permits")),
            LockMode::Read => Some("reader".into()),
            LockMode::Write => Some("writer".into()),
        }
    }
}

/// One of the locks that a shard lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The key.
    pub key: LockKey,
    /// The holder. Of several: the one with the least token.
    pub holder: Holder,
    /// How many other holders a semaphore, or a read-write lock, has.
    pub others: u32,
    /// How many callers wait for it; of a queue with more than [`COUNTED_MAX`](crate::limits::COUNTED_MAX) processes, how many
    /// processes. One that has ended is counted until it comes to the head.
    pub waiting: u32,
}

/// Which of a shard's locks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Of this namespace alone.
    pub namespace: Option<Namespace>,
    /// Those after the page that ended with this; `None`: from the start.
    pub after: Option<Cursor>,
}

/// Some of the locks that a shard lists, in no order that means anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPage {
    /// The locks: perhaps none, though there are more pages.
    pub locks: Vec<HeldLock>,
    /// Where the next page begins. `None`: this was the last.
    pub next: Option<Cursor>,
}

/// Where a shard's page ended, in the words of that shard.
#[derive(Clone, PartialEq, Eq)]
pub struct Cursor(pub(super) Vec<u8>);

impl fmt::Debug for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cursor({})", self.0.escape_ascii())
    }
}
