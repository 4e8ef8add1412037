//! Acquire: take a key, or queue for it.

use std::time::Duration;

use super::{super::queue::Waiter, Batch, Entry};
use crate::{
    ids::{Epoch, Nonce, Token},
    limits::{RECHECK_MAX, TICKET_KEEP},
    name::{Label, LockKey},
    shard::{Mode, Notification, Record, Reply, SlotState, Ticket},
};

/// What an acquire asks for.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) key: &'a LockKey,
    pub(super) nonce: Nonce,
    pub(super) label: &'a Label,
    pub(super) lease: Duration,
    pub(super) tokens: u32,
    pub(super) ticket: Option<Ticket>,
    pub(super) proof: Option<Epoch>,
}

impl Batch<'_> {
    /// Takes a key, with the tokens from `token` on if it is new to this nonce.
    pub(super) fn acquire(&mut self, ask: &Ask<'_>, token: Option<Token>) -> Reply {
        if let Some(refusal) = self.refusal(ask.key) {
            if matches!(refusal, Reply::Grace { .. }) {
                self.queue_up(ask);
            }
            return refusal;
        }
        let SlotState { mode, epoch } = self.slot(ask.key);
        match (mode, ask.proof) {
            (Mode::Sealed, _) => return self.acquire_sealed(ask, epoch),
            (Mode::Import, Some(proof)) if proof == epoch => self.armed.imports.prove(ask.key),
            _ => {}
        }
        self.pass(ask.key, Some(ask.nonce));
        match self.live(ask.key).map(|entry| entry.record.nonce) {
            None if !self.is_free(ask.key) => {
                self.queue_up(ask);
                Reply::NeedProof { epoch }
            }
            None => self.grant(ask, token),
            Some(holder) if holder == ask.nonce => self.grant_again(ask),
            Some(_) => self.wait(ask),
        }
    }

    /// Acquires a key in a slot that leaves: only if this nonce has it already. Any other request
    /// queues at the next shard, and no longer here.
    fn acquire_sealed(&mut self, ask: &Ask<'_>, epoch: Epoch) -> Reply {
        let holder = self.live(ask.key).map(|entry| entry.record.nonce);
        if holder == Some(ask.nonce) {
            return self.grant_again(ask);
        }
        self.queues.remove(ask.key, ask.nonce);
        let absent = holder.is_none();
        Reply::Moving { epoch, absent }
    }

    fn grant(&mut self, ask: &Ask<'_>, token: Option<Token>) -> Reply {
        // The waiter that pass left needs more tokens than are left, and is not overtaken.
        let starves = self.queues.first(ask.key, self.now_ms).is_some();
        let Some(token) = token.filter(|_| !starves) else {
            return Reply::NoTokens;
        };
        let record = Record {
            nonce: ask.nonce,
            label: ask.label.clone(),
            token,
            tokens: ask.tokens,
            arm: self.armed.epoch,
            told: false,
        };
        self.write(ask.key, record, ask.lease);
        Reply::Granted {
            token,
            tokens: ask.tokens,
            contended: false,
        }
    }

    /// A repeat, or a re-check that finds a grant made meanwhile.
    fn grant_again(&mut self, ask: &Ask<'_>) -> Reply {
        self.queues.remove(ask.key, ask.nonce);
        let (contended, expires_ms) = (self.contended(ask.key), self.end_of(ask.lease));
        let entry = self.live(ask.key).expect("it was found live");
        entry.expires_ms = expires_ms;
        Reply::Granted {
            token: entry.record.token,
            tokens: entry.record.tokens,
            contended,
        }
    }

    /// Somebody else has it.
    fn wait(&mut self, ask: &Ask<'_>) -> Reply {
        let Some(ticket) = ask.ticket else {
            return self.held(ask.key, None);
        };
        let waiter = self.waiter(ask, ticket);
        let Some(stand) = self.queues.enter(ask.key, waiter, self.now_ms) else {
            return Reply::TooManyWaiters {
                retry_after: RECHECK_MAX,
            };
        };
        let Record { nonce, told, .. } = self.live(ask.key).expect("it was found live").record;
        if !(stand.new && told) {
            let contended = Notification::Contended {
                key: ask.key.clone(),
                nonce,
            };
            self.notifications.push((nonce.client, contended));
        }
        self.held(ask.key, Some(stand.position))
    }

    /// Queues a ticket while nothing can be granted: a place is not a grant, and earlier waiters
    /// keep waiting.
    fn queue_up(&mut self, ask: &Ask<'_>) {
        if let Some(ticket) = ask.ticket {
            let waiter = self.waiter(ask, ticket);
            self.queues.enter(ask.key, waiter, self.now_ms);
        }
    }

    fn held(&mut self, key: &LockKey, position: Option<u32>) -> Reply {
        let now_ms = self.now_ms;
        let Entry { record, expires_ms } = self.live(key).expect("it was found live");
        Reply::Held {
            remaining: Duration::from_millis(*expires_ms - now_ms),
            label: record.label.clone(),
            position,
        }
    }

    fn waiter(&self, ask: &Ask<'_>, ticket: Ticket) -> Waiter {
        Waiter {
            nonce: ask.nonce,
            label: ask.label.clone(),
            tokens: ask.tokens,
            ticket,
            ends_ms: self.end_of(TICKET_KEEP),
        }
    }
}
