//! What this process may do with the record it has.

use super::{Handoff, rules::Standing, tokens::Tokens};
use crate::{clock::Instant, ids::Token};

/// A record, and how far it was handed on.
#[derive(Debug)]
pub(super) struct Record<H> {
    pub(super) hold: H,
    tokens: Tokens,
    /// Somebody in this process has it.
    pub(super) in_use: bool,
    /// Nobody had it yet: the first to get it is handed nothing on.
    fresh: bool,
    /// Nobody has had it for as long as it may be kept so.
    pub(super) tired: bool,
    wanted: Option<Wanted>,
}

/// Another process waits.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    since: Instant,
    handed: u32,
}

impl<H: Standing> Record<H> {
    /// One that nobody had yet.
    pub(super) fn new(hold: H, tokens: Tokens) -> Self {
        Self {
            hold,
            tokens,
            in_use: false,
            fresh: true,
            tired: false,
            wanted: None,
        }
    }

    /// Another process waits for it.
    pub(super) fn want(&mut self, now: Instant) {
        self.wanted.get_or_insert(Wanted {
            since: now,
            handed: 0,
        });
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whether somebody here may have it now that nobody has.
    pub(super) fn may_be_used(&self, now: Instant, handoff: Handoff) -> bool {
        let within = |wanted: Wanted| {
            wanted.handed < handoff.max && now.since(wanted.since) < handoff.length
        };
        let goes_on = self.fresh || (self.hands_on(handoff) && self.wanted.is_none_or(within));
        self.hold.is_held(now) && !self.tokens.is_empty() && goes_on
    }

    /// Whether it would be handed on if there were a token left.
    pub(super) fn ran_out(&self, handoff: Handoff) -> bool {
        self.hands_on(handoff) && self.tokens.is_empty()
    }

    fn hands_on(&self, handoff: Handoff) -> bool {
        handoff.max > 0 && self.hold.terms().hold_for.is_none()
    }

    /// Somebody has it, by this token; and whether somebody had it before.
    pub(super) fn take(&mut self) -> Option<(Token, bool)> {
        let token = self.tokens.take()?;
        let handed = !std::mem::replace(&mut self.fresh, false);
        if let Some(wanted) = &mut self.wanted {
            wanted.handed += u32::from(handed);
        }
        self.in_use = true;
        Some((token, handed))
    }
}
