//! The operations on one lock.

mod acquire;
mod adopt;
mod confirm;
mod pass;
mod release;
mod renew;

use std::time::Duration;

use self::acquire::Ask;
use super::{
    head::Armed,
    import::Import,
    lock_state::{Entry, LockState},
    millis,
    tokens::TokenBlock,
};
use crate::{
    ids::{Nonce, Token},
    name::{Label, LockKey},
    shard::{LockMode, Mode, Notification, Op, Record, Reply, SlotState},
};

/// The documents of one operation, its time, and its effects.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) armed: &'a mut Armed,
    /// The state of the key's slot.
    pub(crate) slot: SlotState,
    /// The import of the key's slot, if the slot arrives.
    pub(crate) import: Option<&'a mut Import>,
    pub(crate) key: &'a LockKey,
    pub(crate) lock: &'a mut LockState,
    /// Receives the notifications to send. The nonce of each one names the receiver.
    pub(crate) notifications: &'a mut Vec<Notification>,
    /// The shard is quiet at the map version of the request: an acquire, a renewal or a release needs no check of the slot.
    pub(crate) quiet: bool,
    pub(crate) now_ms: u64,
}

impl Context<'_> {
    /// Applies `op`. The tokens of an acquire come from `block`, which has enough for it, or none.
    pub(crate) fn apply(&mut self, op: &Op, block: &mut TokenBlock) -> Reply {
        match op {
            Op::Acquire {
                nonce,
                label,
                lease,
                mode: LockMode::Exclusive,
                tokens,
                ticket,
                proof,
                floor: _,
            } => {
                let ask = Ask {
                    nonce: *nonce,
                    label,
                    lease: *lease,
                    tokens: *tokens,
                    ticket: *ticket,
                    proof: *proof,
                };
                self.acquire(&ask, block.take(*tokens))
            }
            Op::Renew {
                nonce,
                label,
                token,
                lease,
            } => self.renew(self.claim(*nonce, label, *token), *lease),
            Op::Confirm {
                nonce,
                label,
                token,
                tokens,
                lease,
                install,
            } => {
                let claim = Record {
                    tokens: *tokens,
                    ..self.claim(*nonce, label, *token)
                };
                self.confirm(claim, *lease, *install)
            }
            Op::Release { nonce } => self.release(*nonce),
            Op::Adopt {
                nonce,
                label,
                own,
                token,
                tokens,
                lease,
                epoch,
            } => {
                let claim = Record {
                    tokens: *tokens,
                    ..self.claim(*nonce, label, *token)
                };
                self.adopt(claim, *own, *lease, *epoch)
            }
            Op::Remove { nonce, epoch } => self.remove(*nonce, *epoch),
        }
    }

    /// The record of a grant that was made elsewhere, or before.
    fn claim(&self, nonce: Nonce, label: &Label, token: Token) -> Record {
        Record {
            nonce,
            label: label.clone(),
            token,
            tokens: 1,
            arm: self.armed.epoch,
            told: false,
        }
    }

    /// The state of the slot. On a quiet shard every slot is open.
    fn slot(&self) -> SlotState {
        if self.quiet {
            return SlotState {
                mode: Mode::Open,
                epoch: self.armed.epoch,
            };
        }
        self.slot
    }

    /// The reason why no nonce can acquire the key now.
    fn refusal(&self) -> Option<Reply> {
        if self.quiet {
            return None;
        }
        let SlotState { mode, epoch } = self.slot;
        if mode == Mode::Shut || self.armed.timers.is_shut(self.now_ms) {
            return Some(Reply::Moved { epoch });
        }
        // Repeats too: in grace, the token in a renewal decides which holder puts its record back.
        let retry_after = self.armed.timers.grace_left(self.now_ms);
        if retry_after.is_zero() {
            return None;
        }
        Some(match mode {
            Mode::Sealed => Reply::Moving { epoch, left: None },
            _ => Reply::Grace { retry_after },
        })
    }

    /// Whether the key, if nobody holds it here, is held nowhere else and stays here.
    fn is_free(&self) -> bool {
        match self.slot().mode {
            Mode::Open => true,
            Mode::Import => {
                let import = self.import.as_ref();
                import.is_some_and(|import| import.is_free(self.key))
            }
            Mode::Sealed | Mode::Shut => false,
        }
    }

    /// The live record.
    fn live(&self) -> Option<&Entry> {
        self.lock.live(self.armed, self.now_ms)
    }

    /// Whether another client waits for the key.
    fn contended(&self) -> bool {
        self.lock.queue(self.now_ms).is_some()
    }

    /// Writes a record and its end, and replaces any other record.
    fn write(&mut self, record: Record, lease: Duration) {
        let expires_ms = self.end_of(lease);
        self.lock.record = Some(Entry { record, expires_ms });
    }

    fn end_of(&self, length: Duration) -> u64 {
        self.now_ms.saturating_add(millis(length))
    }
}
