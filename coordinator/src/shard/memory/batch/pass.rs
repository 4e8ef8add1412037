//! Pass: a free key goes to its first waiter.

use std::time::Duration;

use super::{Batch, Entry, tokens::Tokens};
use crate::{
    ids::Nonce,
    name::LockKey,
    shard::{Notification, QueuedGrant, Record},
};

impl Batch<'_> {
    /// Grants `key` to its first waiter, if it is free and may be granted now. Notifies that
    /// nonce's client, unless it is the `asking` one, which is about to be answered.
    pub(super) fn pass(&mut self, key: &LockKey, asking: Option<Nonce>) {
        let may_be_granted = self.contended(key) && self.refusal(key).is_none();
        if !may_be_granted || self.live(key).is_some() || !self.is_free(key) {
            return;
        }
        let Some(first) = self.queues.first(key, self.now_ms).cloned() else {
            return;
        };
        let mut tokens = Tokens::reserve(self.armed, first.tokens.into());
        let Some(token) = tokens.next(first.tokens) else {
            return;
        };
        self.queues.remove(key, first.nonce);
        let contended = self.contended(key);
        let record = Record {
            nonce: first.nonce,
            label: first.label,
            token,
            tokens: first.tokens,
            arm: self.armed.epoch,
            told: contended,
        };
        self.write(key, record, first.ticket.claim);
        if asking == Some(first.nonce) {
            return;
        }
        let turn = Notification::Granted(QueuedGrant {
            key: key.clone(),
            nonce: first.nonce,
            token,
            tokens: first.tokens,
            claim: first.ticket.claim,
            sent: first.ticket.sent,
            contended,
        });
        self.notifications.push((first.nonce.client, turn));
    }

    /// Writes a record and its end, replacing any record of `key`.
    pub(super) fn write(&mut self, key: &LockKey, record: Record, lease: Duration) {
        let expires_ms = self.end_of(lease);
        self.records
            .put(key, Entry { record, expires_ms }, self.now_ms);
    }
}
