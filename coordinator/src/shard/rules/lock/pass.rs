//! Pass: a free key goes to its first waiter, and free shares to the first waiters.

use super::{super::queue::Waiter, Context, acquire::Ask};
use crate::{
    limits::PASS_MAX,
    shard::{LockKind, Notification, QueuedGrant, Record},
};

impl Context<'_> {
    /// Grants the key to its first waiters, as far as they fit and the key may be granted now. Notifies the clients of
    /// these nonces, except of the one that runs this by its request `ask`, and gets an answer anyway. Returns whether
    /// the first waiter fits, but needs more tokens than are left.
    pub(super) fn pass(&mut self, ask: Option<&Ask<'_>>) -> bool {
        if !self.contended() || self.refusal().is_some() {
            return false;
        }
        for _ in 0..PASS_MAX {
            let Some(first) = self.first_that_fits(ask) else {
                return false;
            };
            let kind = first.mode.kind();
            if !self.grant_first(first, ask) {
                return true;
            }
            if kind == LockKind::Mutex {
                return false;
            }
        }
        false
    }

    /// The first waiter, if it fits. A waiter that does not fit makes those behind it wait.
    fn first_that_fits(&mut self, ask: Option<&Ask<'_>>) -> Option<Waiter> {
        // Most keys have a holder: then no ticket is read.
        if self.live().is_some() || !self.may_pass(ask) {
            return None;
        }
        let mode = self.lock.first(self.now_ms)?.mode;
        let left = self.left(mode.kind(), ask)?;
        let fits = self.fits(mode, left);
        fits.then(|| self.lock.first(self.now_ms).cloned())?
    }

    /// Whether any waiter may be granted the key here: the former shard has none of it, or a request proves how many
    /// shares it has left.
    fn may_pass(&self, ask: Option<&Ask<'_>>) -> bool {
        let of_shares = ask
            .map(|ask| ask.mode.kind())
            .filter(|kind| *kind != LockKind::Mutex);
        match of_shares {
            Some(kind) => self.left(kind, ask).is_some(),
            None => self.left(LockKind::Mutex, None) == Some(0),
        }
    }

    /// Grants to `first`. Returns whether there are tokens for it.
    fn grant_first(&mut self, first: Waiter, ask: Option<&Ask<'_>>) -> bool {
        let Some(token) = self.armed.tokens.draw(first.tokens) else {
            return false;
        };
        self.lock.leave(first.nonce);
        let contended = self.contended();
        let record = Record {
            nonce: first.nonce,
            label: first.label,
            token,
            tokens: first.tokens,
            arm: self.armed.epoch,
            told: contended,
        };
        let mode = first.mode;
        self.write(record, (mode.kind(), mode.shares()), first.ticket.claim);
        if ask.is_none_or(|ask| ask.nonce != first.nonce) {
            self.notifications.push(Notification::Granted(QueuedGrant {
                key: self.key.clone(),
                nonce: first.nonce,
                token,
                tokens: first.tokens,
                claim: first.ticket.claim,
                sent: first.ticket.sent,
                contended,
            }));
        }
        true
    }
}
