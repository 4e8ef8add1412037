//! Pass: a free key goes to its first waiter.

use super::Context;
use crate::{
    ids::Nonce,
    shard::{Notification, QueuedGrant, Record},
};

impl Context<'_> {
    /// Grants the key to its first waiter, if the key is free and may be granted now. Notifies that
    /// nonce's client, unless it is the `asking` one, which gets an answer anyway.
    pub(super) fn pass(&mut self, asking: Option<Nonce>) {
        let may_be_granted = self.contended() && self.refusal().is_none();
        if !may_be_granted || self.live().is_some() || !self.is_free() {
            return;
        }
        let Some(first) = self.lock.first(self.now_ms).cloned() else {
            return;
        };
        let mut block = self.armed.tokens.set_aside(first.tokens.into());
        let Some(token) = block.take(first.tokens) else {
            return;
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
        self.write(record, first.ticket.claim);
        if asking == Some(first.nonce) {
            return;
        }
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
}
