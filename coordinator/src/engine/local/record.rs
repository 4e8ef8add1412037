//! The record of this process, and its permitted uses.

use super::{Handoff, terms::LeaseView, tokens::Tokens};
use crate::{clock::Instant, ids::Token};

/// A record, and the hand-offs it has had.
#[derive(Debug)]
pub(crate) struct Record<H> {
    pub(crate) lease: H,
    tokens: Tokens,
    /// How many holders it has in this process: more than one only if they are readers.
    holders: u32,
    /// It had no holder yet: giving it to the first one is not a hand-off.
    fresh: bool,
    /// It was without a holder for as long as allowed.
    pub(crate) tired: bool,
    contention: Option<Contention>,
}

/// Another process waits.
#[derive(Clone, Copy, Debug)]
struct Contention {
    since: Instant,
    handed: u32,
}

impl<H: LeaseView> Record<H> {
    /// A record without a holder so far.
    pub(crate) fn new(lease: H, tokens: Tokens) -> Self {
        Self {
            lease,
            tokens,
            holders: 0,
            fresh: true,
            tired: false,
            contention: None,
        }
    }

    /// Another process waits for it since `now`, or since before.
    pub(crate) fn contended(&mut self, now: Instant) {
        self.contention.get_or_insert(Contention {
            since: now,
            handed: 0,
        });
    }

    pub(crate) fn is_contended(&self) -> bool {
        self.contention.is_some()
    }

    /// Whether it has a holder in this process.
    pub(crate) fn is_in_use(&self) -> bool {
        self.holders > 0
    }

    /// One of its holders has released it.
    pub(crate) fn released(&mut self) {
        self.holders = self.holders.saturating_sub(1);
    }

    /// Whether readers that waited for it may have it together.
    pub(crate) fn is_shared(&self, now: Instant) -> bool {
        self.lease.terms().is_shared() && self.lease.is_held(now) && !self.tokens.is_empty()
    }

    /// Whether a waiter here may have it, now that it has no holder.
    pub(crate) fn may_be_used(&self, now: Instant, handoff: Handoff) -> bool {
        let within = |contention: Contention| {
            contention.handed < handoff.max && now.since(contention.since) < handoff.length
        };
        let goes_on = self.fresh || (self.hands_on(handoff) && self.contention.is_none_or(within));
        self.lease.is_held(now) && !self.tokens.is_empty() && goes_on
    }

    /// Whether it would be handed on if a token were left.
    pub(crate) fn ran_out(&self, handoff: Handoff) -> bool {
        self.hands_on(handoff) && self.tokens.is_empty()
    }

    fn hands_on(&self, handoff: Handoff) -> bool {
        handoff.max > 0 && self.lease.terms().hold_for.is_none()
    }

    /// Gives it to a holder, with this token; and tells whether it had a holder before.
    pub(crate) fn take(&mut self) -> Option<(Token, bool)> {
        let token = self.tokens.take()?;
        let handed = !std::mem::replace(&mut self.fresh, false);
        if let Some(contention) = &mut self.contention {
            contention.handed += u32::from(handed);
        }
        self.holders += 1;
        Some((token, handed))
    }
}
