//! Acquire: take a key, or queue for it.

use std::time::Duration;

use super::{
    super::{
        queue::{Place, Waiter},
        tokens::TokenBlock,
    },
    Context,
};
use crate::{
    ids::{Epoch, Nonce, Token},
    limits::{PASS_MAX, RECHECK_MAX, TICKET_KEEP},
    name::Label,
    shard::{LockKind, LockMode, Mode, Notification, Proof, Record, Reply, SlotState, Ticket},
};

/// The terms of an acquire, as in [`Op::Acquire`](crate::shard::Op::Acquire).
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) nonce: Nonce,
    pub(super) label: &'a Label,
    pub(super) lease: Duration,
    pub(super) mode: LockMode,
    pub(super) preferred: bool,
    pub(super) tokens: u32,
    pub(super) ticket: Option<Ticket>,
    pub(super) proof: Option<Proof>,
}

impl Context<'_> {
    /// Takes the key, with the next tokens of `block` if the nonce does not have it yet.
    pub(super) fn acquire(&mut self, ask: &Ask<'_>, block: &mut TokenBlock) -> Reply {
        let token = block.take(ask.tokens);
        if self.outdated {
            return Reply::Outdated;
        }
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
        let starved = self.pass(Some(ask));
        if self.has(ask.nonce) {
            return self.grant_again(ask);
        }
        if let Some(refusal) = self.other_kind(ask) {
            return refusal;
        }
        // The waiter that pass left needs more tokens than are left, and is not overtaken.
        if starved {
            return Reply::NoTokens;
        }
        if self.live().is_some() {
            return self.wait(ask);
        }
        let left = self.left(ask.mode.kind(), Some(ask));
        // Only a request that may be granted looks at the first waiter, and drops those that have ended.
        let counts = left.filter(|left| *left == 0 || ask.mode.kind() != LockKind::Mutex);
        if let Some(left) = counts
            && self.is_next(ask)
            && self.fits(ask.mode, left)
        {
            return match self.above_the_passed(ask, token, block) {
                Some(token) => self.grant(ask, token),
                None => Reply::NoTokens,
            };
        }
        if left != Some(0) {
            self.enter(ask);
            return Reply::NeedProof { epoch };
        }
        self.wait(ask)
    }

    /// Whether it goes before all waiters but itself.
    fn is_next(&mut self, ask: &Ask<'_>) -> bool {
        let first = self.lock.first(self.now_ms);
        first.is_none_or(|first| first.nonce == ask.nonce || (ask.preferred && !first.preferred))
    }

    /// Acquires a key in a slot that leaves: only if this nonce has it already. Any other request
    /// queues at the next shard, and no longer here.
    fn acquire_sealed(&mut self, ask: &Ask<'_>, epoch: Epoch) -> Reply {
        if self.has(ask.nonce) {
            return self.grant_again(ask);
        }
        if let Some(refusal) = self.other_kind(ask) {
            return refusal;
        }
        self.lock.leave(ask.nonce);
        let left = match self.held() {
            Some(LockKind::Mutex) => None,
            _ => Some(u32::try_from(self.sum()).unwrap_or(u32::MAX)),
        };
        Reply::Moving { epoch, left }
    }

    /// Whether `nonce` has a live record.
    fn has(&mut self, nonce: Nonce) -> bool {
        let (armed, now_ms) = (&*self.armed, self.now_ms);
        let own = self.lock.own(nonce, armed, now_ms);
        own.is_some_and(|entry| entry.is_live(armed, now_ms))
    }

    /// The refusal of a request for a key that is held as a lock of another kind.
    fn other_kind(&mut self, ask: &Ask<'_>) -> Option<Reply> {
        let held = self.held().filter(|held| *held != ask.mode.kind())?;
        self.lock.leave(ask.nonce);
        Some(Reply::OtherKind { held })
    }

    /// `token` of `block`, or a later one: a share may be granted beside one that passed to a waiter since.
    fn above_the_passed(
        &mut self,
        ask: &Ask<'_>,
        token: Option<Token>,
        block: &TokenBlock,
    ) -> Option<Token> {
        let (token, tokens) = (token?, &mut self.armed.tokens);
        if ask.mode == LockMode::Exclusive || block.is_last_of(tokens) {
            return Some(token);
        }
        tokens.draw(ask.tokens)
    }

    fn grant(&mut self, ask: &Ask<'_>, token: Token) -> Reply {
        let record = Record {
            nonce: ask.nonce,
            label: ask.label.clone(),
            token,
            tokens: ask.tokens,
            arm: self.armed.epoch,
            told: false,
        };
        self.lock.leave(ask.nonce);
        self.write(record, (ask.mode.kind(), ask.mode.shares()), ask.lease);
        Reply::Granted {
            token,
            tokens: ask.tokens,
            contended: self.contended(),
        }
    }

    /// A repeat, or a re-check that finds a grant made meanwhile.
    fn grant_again(&mut self, ask: &Ask<'_>) -> Reply {
        self.lock.leave(ask.nonce);
        let (contended, expires) = (self.contended(), self.end_of(ask.lease));
        let own = self.lock.own(ask.nonce, self.armed, self.now_ms);
        let entry = own.expect("it was found live");
        entry.expires = expires;
        Reply::Granted {
            token: entry.record.token,
            tokens: entry.record.tokens,
            contended,
        }
    }

    /// Other nonces have the key, or go before this one.
    fn wait(&mut self, ask: &Ask<'_>) -> Reply {
        let mut position = None;
        if ask.ticket.is_some() {
            let Some(place) = self.enter(ask) else {
                return Reply::TooManyWaiters {
                    retry_after: RECHECK_MAX,
                };
            };
            // A message that was lost is repaired by the first waiter: many would repeat it for each other.
            if place.position == 0 {
                self.notify_holder(place.new);
                self.notify_readers();
            }
            position = Some(place.position);
        }
        let (remaining, label) = match self.live() {
            Some(entry) => (entry.expires.left(self.now_ms), entry.record.label.clone()),
            None => (self.until_a_share_ends(), Label::default()),
        };
        Reply::Held {
            remaining,
            label,
            position,
        }
    }

    /// How long until the first of the live shares ends, unless it is renewed.
    fn until_a_share_ends(&self) -> Duration {
        let shares = self.lock.shares.iter();
        let live = shares.flat_map(|shares| shares.live(self.armed, self.now_ms));
        let soonest = live.map(|entry| entry.expires.left(self.now_ms)).min();
        soonest.unwrap_or(RECHECK_MAX)
    }

    /// Tells the holder that the key is contended, unless the waiter is new and the grant told it already.
    fn notify_holder(&mut self, new: bool) {
        let Some(entry) = self.live() else {
            return;
        };
        let Record { nonce, told, .. } = entry.record;
        if !(new && told) {
            let key = self.key.clone();
            self.notifications
                .push(Notification::Contended { key, nonce });
        }
    }

    /// Tells the holders of a read-write lock that it is contended: no other reader of their processes comes in any more.
    fn notify_readers(&mut self) {
        let shares = self.lock.shares.iter();
        let shares = shares.filter(|shares| shares.kind == LockKind::ReadWrite);
        let live = shares.flat_map(|shares| shares.live(self.armed, self.now_ms));
        let contended = live.take(PASS_MAX).map(|entry| Notification::Contended {
            key: self.key.clone(),
            nonce: entry.record.nonce,
        });
        self.notifications.extend(contended);
    }

    /// Puts the ticket in the queue. While nothing can be granted, too: a place is no grant, and earlier waiters keep
    /// waiting. `None`: there is no room, or no ticket.
    fn enter(&mut self, ask: &Ask<'_>) -> Option<Place> {
        let waiter = Waiter {
            nonce: ask.nonce,
            label: ask.label.clone(),
            mode: ask.mode,
            preferred: ask.preferred,
            tokens: ask.tokens,
            ticket: ask.ticket?,
            ends: self.end_of(TICKET_KEEP),
        };
        self.lock.enter(waiter, self.now_ms)
    }
}
