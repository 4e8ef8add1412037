//! Acquire: take a key, or queue for it.

use std::time::Duration;

use super::{
    super::queue::{Place, Waiter},
    Context,
};
use crate::{
    ids::{Epoch, Nonce, Token},
    limits::{RECHECK_MAX, TICKET_KEEP},
    name::Label,
    shard::{Mode, Notification, Proof, Record, Reply, SlotState, Ticket},
};

/// The terms of an acquire, as in [`Op::Acquire`](crate::shard::Op::Acquire).
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) nonce: Nonce,
    pub(super) label: &'a Label,
    pub(super) lease: Duration,
    pub(super) tokens: u32,
    pub(super) ticket: Option<Ticket>,
    pub(super) proof: Option<Proof>,
}

impl Context<'_> {
    /// Takes the key, with the tokens from `token` on if the nonce does not have it yet.
    pub(super) fn acquire(&mut self, ask: &Ask<'_>, token: Option<Token>) -> Reply {
        if let Some(refusal) = self.refusal() {
            if matches!(refusal, Reply::Grace { .. }) {
                self.enter(ask);
            }
            return refusal;
        }
        let SlotState { mode, epoch } = self.slot();
        if mode == Mode::Sealed {
            return self.acquire_sealed(ask, epoch);
        }
        let proven = mode == Mode::Import && ask.proof == Some(Proof { epoch, left: 0 });
        if let Some(import) = self.import.as_mut().filter(|_| proven) {
            import.prove(self.key);
        }
        self.pass(Some(ask.nonce));
        match self.live().map(|entry| entry.record.nonce) {
            None if !self.is_free() => {
                self.enter(ask);
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
        let holder = self.live().map(|entry| entry.record.nonce);
        if holder == Some(ask.nonce) {
            return self.grant_again(ask);
        }
        self.lock.leave(ask.nonce);
        let left = holder.is_none().then_some(0);
        Reply::Moving { epoch, left }
    }

    fn grant(&mut self, ask: &Ask<'_>, token: Option<Token>) -> Reply {
        // The waiter that pass left needs more tokens than are left, and is not overtaken.
        let starves = self.lock.first(self.now_ms).is_some();
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
        self.write(record, ask.lease);
        Reply::Granted {
            token,
            tokens: ask.tokens,
            contended: false,
        }
    }

    /// A repeat, or a re-check that finds a grant made meanwhile.
    fn grant_again(&mut self, ask: &Ask<'_>) -> Reply {
        self.lock.leave(ask.nonce);
        let (contended, expires_ms) = (self.contended(), self.end_of(ask.lease));
        let entry = self.lock.record.as_mut().expect("it was found live");
        entry.expires_ms = expires_ms;
        Reply::Granted {
            token: entry.record.token,
            tokens: entry.record.tokens,
            contended,
        }
    }

    /// Another nonce has the key.
    fn wait(&mut self, ask: &Ask<'_>) -> Reply {
        let mut position = None;
        if ask.ticket.is_some() {
            let Some(place) = self.enter(ask) else {
                return Reply::TooManyWaiters {
                    retry_after: RECHECK_MAX,
                };
            };
            self.notify_holder(place.new);
            position = Some(place.position);
        }
        let entry = self.live().expect("it was found live");
        Reply::Held {
            remaining: Duration::from_millis(entry.expires_ms - self.now_ms),
            label: entry.record.label.clone(),
            position,
        }
    }

    /// Tells the holder that the key is contended, unless the waiter is new and the grant told it already.
    fn notify_holder(&mut self, new: bool) {
        let Record { nonce, told, .. } = self.live().expect("it was found live").record;
        if !(new && told) {
            let key = self.key.clone();
            self.notifications
                .push(Notification::Contended { key, nonce });
        }
    }

    /// Puts the ticket in the queue. While nothing can be granted, too: a place is no grant, and earlier waiters keep
    /// waiting. `None`: there is no room, or no ticket.
    fn enter(&mut self, ask: &Ask<'_>) -> Option<Place> {
        let waiter = Waiter {
            nonce: ask.nonce,
            label: ask.label.clone(),
            tokens: ask.tokens,
            ticket: ask.ticket?,
            ends_ms: self.end_of(TICKET_KEEP),
        };
        self.lock.enter(waiter, self.now_ms)
    }
}
