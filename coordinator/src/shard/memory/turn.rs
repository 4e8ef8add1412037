//! One batch's turn at the shard: acquire, renew, release.

use std::time::Duration;

use super::{
    armed::Armed,
    millis,
    records::{Entry, Records},
};
use crate::{
    ids::{Epoch, MapVersion, Nonce, Token},
    limits::COUNTER_MAX,
    name::{Label, LockKey},
    shard::{Mode, Op, Record, Reply, Request, SlotState},
};

/// The tokens set aside for a batch: one an acquire, granted or not.
#[derive(Debug)]
struct Tokens {
    epoch: Epoch,
    /// Counter of the last one handed out. `None`: they are used up.
    last: Option<u64>,
}

impl Tokens {
    /// Sets `count` tokens aside, or none if that many are not left.
    fn reserve(armed: &mut Armed, count: u64) -> Self {
        let first = armed.counter;
        let fits = first + count <= COUNTER_MAX;
        if fits {
            armed.counter += count;
        }
        Self {
            epoch: armed.token_epoch,
            last: fits.then_some(first),
        }
    }

    fn next(&mut self) -> Option<Token> {
        let last = self.last.as_mut()?;
        *last += 1;
        Some(Token::new(self.epoch, *last))
    }
}

/// A batch being applied, all of it at one time.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    armed: &'a Armed,
    records: &'a mut Records,
    tokens: Tokens,
    now_ms: u64,
    quiet: bool,
}

impl<'a> Turn<'a> {
    /// The turn of a batch with this many acquires, sent by a map of this version.
    pub(super) fn new(
        armed: &'a mut Armed,
        records: &'a mut Records,
        now_ms: u64,
        (acquires, map): (u64, MapVersion),
    ) -> Self {
        let tokens = Tokens::reserve(armed, acquires);
        let quiet = map != MapVersion::UNKNOWN && armed.quiet == Some(map);
        Self {
            armed,
            records,
            tokens,
            now_ms,
            quiet,
        }
    }

    /// Whether the slots need no look.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Applies one operation.
    pub(super) fn apply(&mut self, request: &Request) -> Reply {
        let key = &request.key;
        match &request.op {
            Op::Acquire {
                nonce,
                label,
                lease,
            } => self.acquire(key, *nonce, label, *lease),
            Op::Renew {
                nonce,
                label,
                token,
                lease,
            } => {
                let arm = self.armed.epoch;
                let claim = Record {
                    nonce: *nonce,
                    label: label.clone(),
                    token: *token,
                    arm,
                };
                self.renew(key, claim, *lease)
            }
            Op::Release { nonce } => self.release(key, *nonce),
        }
    }

    fn acquire(&mut self, key: &LockKey, nonce: Nonce, label: &Label, lease: Duration) -> Reply {
        let token = self.tokens.next();
        if let Some(refusal) = self.refusal(key) {
            return refusal;
        }
        let (now_ms, expires_ms) = (self.now_ms, self.end_of(lease));
        let found = self.records.get_mut(key, now_ms);
        match found.filter(|entry| self.armed.is_live(entry, now_ms)) {
            Some(entry) if entry.record.nonce == nonce => {
                entry.expires_ms = expires_ms;
                return Reply::Granted {
                    token: entry.record.token,
                };
            }
            Some(entry) => return held(entry, now_ms),
            None => {}
        }
        let Some(token) = token else {
            return Reply::NoTokens;
        };
        let record = Record {
            nonce,
            label: label.clone(),
            token,
            arm: self.armed.epoch,
        };
        self.records.put(key, Entry { record, expires_ms }, now_ms);
        Reply::Granted { token }
    }

    fn renew(&mut self, key: &LockKey, claim: Record, lease: Duration) -> Reply {
        let slot = self.armed.slots.get(key.slot());
        if !self.quiet && slot.mode == Mode::Shut {
            return Reply::Moved { epoch: slot.epoch };
        }
        let (now_ms, expires_ms) = (self.now_ms, self.end_of(lease));
        let free = match self.records.get_mut(key, now_ms) {
            Some(entry) if entry.record.nonce == claim.nonce => {
                entry.expires_ms = expires_ms;
                entry.record.arm = claim.arm;
                return Reply::Renewed { reclaimed: false };
            }
            // A lower token is an older grant, which a stale replica may have brought back.
            found => found.is_none_or(|entry| entry.record.token < claim.token),
        };
        if now_ms < self.armed.shut_until_ms {
            return Reply::Moved { epoch: slot.epoch };
        }
        if now_ms >= self.armed.grace_until_ms || !free {
            return Reply::Lost;
        }
        self.records.put(
            key,
            Entry {
                record: claim,
                expires_ms,
            },
            now_ms,
        );
        Reply::Renewed { reclaimed: true }
    }

    fn release(&mut self, key: &LockKey, nonce: Nonce) -> Reply {
        Reply::Released {
            held: self.records.remove(key, nonce, self.now_ms),
        }
    }

    /// Why nobody may take `key` now, whoever has it.
    fn refusal(&self, key: &LockKey) -> Option<Reply> {
        if self.quiet {
            return None;
        }
        let SlotState { mode, epoch } = self.armed.slots.get(key.slot());
        if mode == Mode::Shut || self.now_ms < self.armed.shut_until_ms {
            return Some(Reply::Moved { epoch });
        }
        // Repeats too: who gets a record back in grace is decided by its token, in a renewal.
        let grace_left = self.armed.grace_left(self.now_ms);
        (!grace_left.is_zero()).then_some(Reply::Grace {
            retry_after: grace_left,
        })
    }

    fn end_of(&self, lease: Duration) -> u64 {
        self.now_ms.saturating_add(millis(lease))
    }
}

fn held(entry: &Entry, now_ms: u64) -> Reply {
    Reply::Held {
        remaining: Duration::from_millis(entry.expires_ms - now_ms),
        label: entry.record.label.clone(),
    }
}
