//! What the sessions of a process share: the way to the cluster, and what is known of clock and tokens.

use parking_lot::Mutex;

use super::{
    time::{Asked, Sight},
    wire::Wire,
};
use crate::{
    clock::Instant,
    ids::Token,
    shard::{docs::SLACK_MAX, rules::millis},
};

/// Shared by the sessions of a store.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wire: Wire,
    /// Whether there are locks: the home of a topology needs no clock.
    pub(super) keeps_locks: bool,
    /// Held by a session that draws tokens.
    pub(super) draws: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    clock: Option<Sight>,
    /// The last token, and the revision of its key; 0: there is none.
    tokens: Option<(Token, i64)>,
}

impl Shared {
    pub(super) fn new(wire: Wire, keeps_locks: bool) -> Self {
        Self {
            wire,
            keeps_locks,
            draws: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.wire.options.clock.now()
    }

    /// If it is time to put the clock forward: its revision, and what it is to show.
    pub(super) fn tick(&self, now: Instant) -> Option<(i64, u64)> {
        let clock = self.known.lock().clock.filter(|_| self.keeps_locks)?;
        match clock.revision {
            // It begins anywhere.
            0 => Some((0, millis(self.wire.options.clock.unix()))),
            revision => Some((revision, clock.tick(now)?)),
        }
    }

    /// Whether the clock that locks need is there.
    pub(super) fn has_clock(&self) -> bool {
        let clock = self.known.lock().clock;
        !self.keeps_locks || clock.is_some_and(|clock| clock.revision != 0)
    }

    /// Keeps what an answer says about the clock: its number, and its revision. Returns the time of the answer, and by how
    /// much the clock may be late.
    pub(super) fn see_clock(&self, asked: Asked, (ms, revision): (u64, i64)) -> (u64, u64) {
        let mut known = self.known.lock();
        let sight = Sight::after(known.clock, asked, revision, ms);
        known.clock = Some(sight);
        match sight.revision == revision {
            true => (ms, sight.slack_ms(asked.answered)),
            false => (ms, millis(SLACK_MAX)),
        }
    }

    /// The last token, as far as it is known, and the revision of its key.
    pub(super) fn tokens(&self) -> Option<(Token, i64)> {
        self.known.lock().tokens
    }

    /// Keeps the last token of an answer: its number, and the key's revision. Returns it.
    pub(super) fn see_tokens(&self, (last, revision): (u64, i64)) -> Token {
        let last = Token::from_number(last);
        let mut known = self.known.lock();
        if known.tokens.is_none_or(|(_, known)| known <= revision) {
            known.tokens = Some((last, revision));
        }
        last
    }
}
