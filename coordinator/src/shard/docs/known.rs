//! What a session knows of locks without a read, and the tokens that it drew ahead: docs/protocol.md, "Tokens drawn ahead".

use hashbrown::HashMap;

use super::store::{COMMIT_WITHIN, Document, Expected, Name};
use crate::{
    ids::Token,
    name::LockKey,
    shard::rules::{LockState, millis},
};

/// Locks that a session knows, at most.
const LOCKS_MAX: usize = 16_384;

/// Tokens drawn ahead, at most.
const AHEAD_MAX: u64 = 4096;

/// Tokens that were taken from the store, in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drawn {
    /// The last one before them.
    pub(super) start: Token,
    pub(super) count: u64,
}

impl Drawn {
    pub(super) fn end(self) -> Token {
        Token::from_number(self.start.get() + self.count)
    }

    /// Those after `last`.
    pub(super) fn after(self, last: Token) -> Self {
        let start = last.max(self.start).min(self.end());
        Self {
            start,
            count: self.end().get() - start.get(),
        }
    }
}

/// A lock that is known without a read.
pub(super) struct Recalled {
    pub(super) version: Expected,
    pub(super) state: LockState,
    /// The draws before it was last read.
    pub(super) draws: u64,
}

/// Locks by their keys.
#[derive(Debug, Default)]
pub(super) struct KnownLocks(HashMap<LockKey, KnownLock>);

#[derive(Debug, Default)]
struct KnownLock {
    /// As the session wrote it. `None`: it did not, or others write it, too.
    written: Option<(u64, LockState)>,
    /// The session found that others wrote it: an acquisition reads it, until a read finds what the session wrote.
    is_shared: bool,
    /// The draws before it was last read: tokens of later draws are above all that it had by then.
    draws: u64,
}

impl KnownLocks {
    /// The lock as the session wrote it; or as a new one, if nothing is known of it. `acquires`: nothing else is asked of it.
    /// `None`: it has to be read.
    pub(super) fn recall(&self, key: &LockKey, acquires: bool) -> Option<Recalled> {
        match self.0.get(key) {
            None => acquires.then(|| Recalled {
                version: Expected::Absent,
                state: LockState::default(),
                draws: 0,
            }),
            Some(lock) if lock.is_shared && acquires => None,
            Some(lock) => {
                let (version, state) = lock.written.clone()?;
                Some(Recalled {
                    version: Expected::Version(version),
                    state,
                    draws: lock.draws,
                })
            }
        }
    }

    /// Makes room for a batch. Not within one: what was read for it counts.
    pub(super) fn make_room(&mut self) {
        if self.0.len() >= LOCKS_MAX {
            self.0.clear();
        }
    }

    /// A read found it, after so many draws.
    pub(super) fn found(&mut self, key: &LockKey, document: Option<&Document>, draws: u64) {
        let there = document.map(|document| document.version);
        let lock = self.0.entry(key.clone()).or_default();
        let written = lock.written.as_ref().map(|(version, _)| *version);
        lock.is_shared = written != there;
        lock.draws = draws;
    }

    /// The session wrote it.
    pub(super) fn wrote(&mut self, key: &LockKey, version: u64, state: &LockState) {
        let written = state.may_be_recalled().then(|| (version, state.clone()));
        self.0.entry(key.clone()).or_default().written = written;
    }

    /// They are not as they were expected.
    pub(super) fn forget<'a>(&mut self, stale: impl IntoIterator<Item = &'a Name>) {
        for name in stale {
            if let Name::Lock(key) = name {
                let lock = self.0.entry(key.clone()).or_default();
                (lock.written, lock.is_shared) = (None, true);
            }
        }
    }
}

/// Tokens that were drawn ahead, for locks that were last read before, or have no document.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    left: Drawn,
    /// How many were left when they were drawn.
    size: u64,
    /// The version of the head on which the draw depended.
    head: Option<Expected>,
    /// The store's clock at the read before the draw.
    drawn_ms: u64,
    /// The number of the draw.
    number: u64,
    /// Draws so far.
    draws: u64,
}

impl Reserve {
    /// Draws so far.
    pub(super) fn draws(&self) -> u64 {
        self.draws
    }

    /// What is left for locks that were last read after so many draws, if it serves under `head` and at `now_ms`; and the last
    /// millisecond at which it does.
    pub(super) fn left(&self, head: Expected, draws: u64, now_ms: u64) -> Option<(Drawn, u64)> {
        let until_ms = self.drawn_ms.saturating_add(millis(COMMIT_WITHIN));
        let serves = self.head == Some(head) && draws < self.number && now_ms <= until_ms;
        serves.then_some((self.left, until_ms))
    }

    /// How many tokens to draw beside those `asked` for: as many as were used of the last ones, or more if that was all.
    pub(super) fn ahead(&self, asked: u64) -> u64 {
        let used = self.size - self.left.count;
        let more = if self.left.count < asked { used } else { 0 };
        (used + more).max(asked * 7).min(AHEAD_MAX)
    }

    /// Tokens were drawn.
    pub(super) fn drew(&mut self) {
        self.draws += 1;
    }

    /// What is left of those of the last draw. It depended on `head`, and followed a read at `drawn_ms`.
    pub(super) fn put(&mut self, left: Drawn, head: Expected, drawn_ms: u64) {
        *self = Self {
            left,
            size: left.count,
            head: Some(head),
            drawn_ms,
            number: self.draws,
            draws: self.draws,
        };
    }

    /// This is left.
    pub(super) fn keep(&mut self, left: Drawn) {
        self.left = left;
    }
}
