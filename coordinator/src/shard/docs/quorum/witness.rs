//! What the sessions of a process know together of the shard's clock, and of the last token.

use std::sync::Arc;

use parking_lot::Mutex;

use super::time::{Asked, Sight};
use crate::{
    clock::{Clock, Instant, Moment},
    ids::Token,
    shard::{
        docs::{COMMIT_WITHIN, Glance, SLACK_MAX},
        rules::millis,
    },
};

/// Shared by the sessions of a store. `R` is the revision of a key: it rises with each change; the default: there is no key.
#[derive(Debug)]
pub(crate) struct Witness<R> {
    clock: Arc<dyn Clock>,
    /// Whether there are locks: the home of a topology needs no clock.
    pub(crate) keeps_locks: bool,
    /// Held by a session that draws tokens.
    pub(crate) turn: tokio::sync::Mutex<()>,
    known: Mutex<Known<R>>,
}

#[derive(Debug)]
struct Known<R> {
    clock: Option<Sight<R>>,
    /// The last token, and the revision of its key.
    tokens: Option<(Token, R)>,
}

impl<R: Copy + Default + Ord> Witness<R> {
    /// Nothing is known. `clock` is this process's own.
    pub(crate) fn new(clock: Arc<dyn Clock>, keeps_locks: bool) -> Self {
        Self {
            clock,
            keeps_locks,
            turn: tokio::sync::Mutex::default(),
            known: Mutex::new(Known {
                clock: None,
                tokens: None,
            }),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// As [`Session::moment`](crate::shard::docs::Session::moment).
    pub(crate) fn moment(&self) -> Option<Moment> {
        Moment::now(&*self.clock).filter(|_| self.keeps_locks)
    }

    /// If it is time to put the clock forward: its revision, and what it is to show.
    pub(crate) fn tick(&self, now: Instant) -> Option<(R, u64)> {
        let clock = self.known.lock().clock.filter(|_| self.keeps_locks)?;
        match clock.revision == R::default() {
            // It begins anywhere.
            true => Some((clock.revision, millis(self.clock.unix()))),
            false => Some((clock.revision, clock.tick(now)?)),
        }
    }

    /// As [`Session::glance`](crate::shard::docs::Session::glance).
    pub(crate) fn glance(&self) -> Option<Glance> {
        let now = self.now();
        if self.tick(now).is_some() {
            return None;
        }
        let known = self.known.lock();
        let clock = known.clock.filter(|_| self.keeps_locks)?;
        Some(Glance {
            now_ms: clock.ms,
            slack_ms: clock.late_ms(now)?,
            until_ms: clock.ms.saturating_add(millis(COMMIT_WITHIN)),
        })
    }

    /// The revision of the clock, and what it shows, as far as it is known.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn clock(&self) -> Option<(R, u64)> {
        let clock = self.known.lock().clock?;
        Some((clock.revision, clock.ms))
    }

    /// Whether the clock that locks need is there.
    #[cfg(feature = "etcd")]
    pub(crate) fn has_clock(&self) -> bool {
        let clock = self.known.lock().clock;
        !self.keeps_locks || clock.is_some_and(|clock| clock.revision != R::default())
    }

    /// Keeps what an answer says about the clock: its number, and its revision. Returns the time of the answer, and by how
    /// much the clock may be late.
    pub(crate) fn see_clock(&self, asked: Asked, (ms, revision): (u64, R)) -> (u64, u64) {
        let mut known = self.known.lock();
        let sight = Sight::after(known.clock, asked, revision, ms);
        known.clock = Some(sight);
        match sight.revision == revision {
            true => (ms, sight.slack_ms(asked.answered)),
            false => (ms, millis(SLACK_MAX)),
        }
    }

    /// The last token, as far as it is known, and the revision of its key.
    pub(crate) fn tokens(&self) -> Option<(Token, R)> {
        self.known.lock().tokens
    }

    /// Keeps the last token of an answer: its number, and the key's revision. Returns it.
    pub(crate) fn see_tokens(&self, (last, revision): (u64, R)) -> Token {
        let last = Token::from_number(last);
        let mut known = self.known.lock();
        if known.tokens.is_none_or(|(_, known)| known <= revision) {
            known.tokens = Some((last, revision));
        }
        last
    }
}
