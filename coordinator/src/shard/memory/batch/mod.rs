//! One batch, applied: acquire, renew, release, adopt, remove.

mod acquire;
mod adopt;
mod pass;
mod release;
mod renew;
mod tokens;

use std::time::Duration;

use self::{acquire::Ask, tokens::Tokens};
use super::{
    armed::Armed,
    millis,
    queues::Queues,
    records::{Entry, Records},
};
use crate::{
    ids::{ClientId, MapVersion, Nonce, Token},
    name::{Label, LockKey},
    shard::{Mode, Notification, Op, Record, Reply, Request, SlotState},
};

/// A batch being applied, all of it at one time.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) armed: &'a mut Armed,
    pub(super) records: &'a mut Records,
    pub(super) queues: &'a mut Queues,
    /// The messages, with their receivers.
    pub(super) notifications: &'a mut Vec<(ClientId, Notification)>,
    /// There is no room for new locks.
    pub(super) full: bool,
    pub(super) now_ms: u64,
    /// The slots of the batch need no check.
    pub(super) quiet: bool,
}

impl Batch<'_> {
    /// Whether a batch sent by a map of this version needs no look at the slots.
    pub(super) fn is_quiet(armed: &Armed, map: MapVersion) -> bool {
        map != MapVersion::UNKNOWN && armed.quiet == Some(map)
    }

    /// Applies `requests` in their order.
    pub(super) fn apply(&mut self, requests: &[Request]) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(requests.len());
        let is_acquire = |request: &Request| matches!(request.op, Op::Acquire { .. });
        for run in requests.chunk_by(|one, next| is_acquire(one) == is_acquire(next)) {
            // Not sooner: what was passed on before must have had the lower tokens.
            let mut tokens = Tokens::reserve(self.armed, self.to_reserve(run));
            let reply = |request| self.apply_one(request, &mut tokens);
            replies.extend(run.iter().map(reply));
        }
        replies
    }

    /// How many tokens a run of operations sets aside, whether they are granted or not.
    fn to_reserve(&self, run: &[Request]) -> u64 {
        let tokens = |request: &Request| match request.op {
            Op::Acquire { tokens, .. } if !self.full => u64::from(tokens),
            _ => 0,
        };
        run.iter().map(tokens).sum()
    }

    fn apply_one(&mut self, Request { key, map, op }: &Request, tokens: &mut Tokens) -> Reply {
        self.quiet = Self::is_quiet(self.armed, *map);
        match op {
            Op::Acquire { .. } if self.full => Reply::OutOfMemory,
            Op::Acquire {
                nonce,
                label,
                lease,
                tokens: count,
                ticket,
                proof,
            } => {
                let ask = Ask {
                    key,
                    nonce: *nonce,
                    label,
                    lease: *lease,
                    tokens: *count,
                    ticket: *ticket,
                    proof: *proof,
                };
                self.acquire(&ask, tokens.next(*count))
            }
            Op::Renew {
                nonce,
                label,
                token,
                lease,
            } => self.renew(key, self.claim(*nonce, label, *token), *lease),
            Op::Release { nonce } => self.release(key, *nonce),
            Op::Adopt {
                nonce,
                label,
                token,
                lease,
                epoch,
            } => self.adopt(key, self.claim(*nonce, label, *token), *lease, *epoch),
            Op::Remove { nonce, epoch } => self.remove(key, *nonce, *epoch),
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

    /// The slot of `key`. A quiet shard's are open, and need no look.
    fn slot(&self, key: &LockKey) -> SlotState {
        if self.quiet {
            return SlotState {
                mode: Mode::Open,
                epoch: self.armed.epoch,
            };
        }
        self.armed.slots.get(key.slot())
    }

    /// The reason why `key` cannot be acquired now, for any holder.
    fn refusal(&self, key: &LockKey) -> Option<Reply> {
        if self.quiet {
            return None;
        }
        let SlotState { mode, epoch } = self.slot(key);
        if mode == Mode::Shut || self.now_ms < self.armed.shut_until_ms {
            return Some(Reply::Moved { epoch });
        }
        // Repeats too: in grace, the token in a renewal decides which holder puts its record back.
        let retry_after = self.armed.grace_left(self.now_ms);
        if retry_after.is_zero() {
            return None;
        }
        Some(match mode {
            Mode::Sealed => Reply::Moving {
                epoch,
                absent: false,
            },
            _ => Reply::Grace { retry_after },
        })
    }

    /// Whether `key`, if nobody holds it here, is held nowhere else and stays here.
    fn is_free(&self, key: &LockKey) -> bool {
        match self.slot(key).mode {
            Mode::Open => true,
            Mode::Import => self.armed.imports.is_free(key),
            Mode::Sealed | Mode::Shut => false,
        }
    }

    /// The live record of `key`.
    fn live(&mut self, key: &LockKey) -> Option<&mut Entry> {
        let found = self.records.get_mut(key, self.now_ms);
        found.filter(|entry| self.armed.is_live(entry, self.now_ms))
    }

    /// Whether somebody waits for `key`.
    fn contended(&self, key: &LockKey) -> bool {
        self.queues.wants(key, self.now_ms)
    }

    fn end_of(&self, length: Duration) -> u64 {
        self.now_ms.saturating_add(millis(length))
    }
}
