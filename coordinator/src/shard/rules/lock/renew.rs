//! Renew: extend a grant; in grace, put it back.

use std::time::Duration;

use super::Context;
use crate::{
    ids::{Nonce, Token},
    shard::{LockKind, LockMode, Mode, Record, Reply},
};

impl Context<'_> {
    /// Extends the grant of `claim`, perhaps for fewer shares, or makes `claim` a record. A holder puts its shares back
    /// without asking for room: all holders of before had room.
    pub(super) fn renew(&mut self, claim: Record, mode: LockMode, lease: Duration) -> Reply {
        let slot = self.slot();
        if slot.mode == Mode::Shut {
            return Reply::Moved { epoch: slot.epoch };
        }
        // A sealed slot has proved to others that a key without a live record is free.
        let may_be_here = slot.mode != Mode::Sealed || self.held().is_some();
        let before = self.sum();
        if may_be_here && self.extend(claim.nonce, mode.shares(), lease) {
            if self.sum() < before {
                self.pass(None);
            }
            return self.renewed(false);
        }
        if self.grace_left().is_zero() || !self.may_come(claim.token, mode) {
            self.pass(None);
            return Reply::Lost;
        }
        self.raise_above(&claim);
        self.install(claim, (mode.kind(), mode.shares()), lease);
        self.renewed(true)
    }

    /// Whether a grant with the token `own` may be written beside the live records, or in their place. A mutex with a
    /// lower token is an older grant, which a stale replica may have brought back.
    pub(super) fn may_come(&self, own: Token, mode: LockMode) -> bool {
        match self.held() {
            None => true,
            Some(held) if held != mode.kind() => false,
            Some(_) => self.live().is_none_or(|entry| entry.record.token < own),
        }
    }

    /// Extends the record of `nonce` to a full lease, for at most `shares`, and makes it one of this arming. Returns
    /// whether there is one.
    pub(super) fn extend(&mut self, nonce: Nonce, shares: u32, lease: Duration) -> bool {
        let (expires, arm) = (self.end_of(lease), self.armed.epoch);
        let own = self.lock.own(nonce, self.armed, self.now_ms);
        own.map(|entry| {
            entry.expires = expires;
            entry.shares = entry.shares.min(shares);
            entry.record.arm = arm;
        })
        .is_some()
    }

    /// Makes `claim` a record: its holder no longer waits.
    pub(super) fn install(&mut self, claim: Record, shares: (LockKind, u32), lease: Duration) {
        self.lock.leave(claim.nonce);
        self.write(claim, shares, lease);
    }

    pub(super) fn renewed(&self, reclaimed: bool) -> Reply {
        let slot = self.slot();
        Reply::Renewed {
            reclaimed,
            contended: self.contended(),
            moving: (slot.mode == Mode::Sealed).then_some(slot.epoch),
        }
    }
}
