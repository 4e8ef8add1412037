//! The operations on one lock.

mod acquire;
mod adopt;
mod batch;
mod confirm;
mod pass;
mod release;
mod renew;

use std::time::Duration;

use self::acquire::Ask;
pub(crate) use self::batch::{Batch, Locks};
use super::{
    end::End,
    head::Armed,
    import::Import,
    lock_state::{Entry, LockState},
    millis,
    shares::Shares,
    tokens::TokenBlock,
};
use crate::{
    ids::{Nonce, Token},
    name::{Label, LockKey},
    shard::{LockKind, LockMode, Mode, Notification, Op, Record, Reply, SlotState},
};

/// Kind and shares of a mutex.
const MUTEX: (LockKind, u32) = (LockKind::Mutex, 1);

/// The documents of one operation, its time, and its effects.
#[derive(Debug)]
struct Context<'a> {
    armed: &'a mut Armed,
    /// The state of the key's slot.
    slot: SlotState,
    /// The import of the key's slot, if the slot arrives.
    import: Option<&'a mut Import>,
    key: &'a LockKey,
    lock: &'a mut LockState,
    /// Receives the notifications to send. The nonce of each one names the receiver.
    notifications: &'a mut Vec<Notification>,
    /// The shard is quiet at the map version of the request: an acquire, a renewal or a release needs no check of the slot.
    quiet: bool,
    /// A namespace was declared since the sender's view.
    outdated: bool,
    now_ms: u64,
    /// By how much the clock may be late.
    slack_ms: u64,
}

impl Context<'_> {
    /// Applies `op`. The tokens of an acquire come from `block`, which has enough for it, or none.
    fn apply(&mut self, op: &Op, block: &mut TokenBlock) -> Reply {
        match op {
            Op::Acquire {
                nonce,
                label,
                lease,
                mode,
                preferred,
                tokens,
                ticket,
                proof,
            } => {
                let ask = Ask {
                    nonce: *nonce,
                    label,
                    lease: *lease,
                    mode: *mode,
                    preferred: *preferred,
                    tokens: *tokens,
                    ticket: *ticket,
                    proof: *proof,
                };
                self.acquire(&ask, block)
            }
            Op::Renew {
                nonce,
                label,
                token,
                mode,
                lease,
            } => self.renew(self.claim(*nonce, label, *token), *mode, *lease),
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
                mode,
                lease,
                epoch,
            } => {
                let claim = Record {
                    tokens: *tokens,
                    ..self.claim(*nonce, label, *token)
                };
                self.adopt(claim, *mode, *own, *lease, *epoch)
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

    /// How long holders may still put records of the slot back, while nothing new is granted.
    fn grace_left(&self) -> Duration {
        self.armed.grace_left(self.slot(), self.now_ms)
    }

    /// The reason why no nonce can acquire the key now.
    fn refusal(&self) -> Option<Reply> {
        if self.quiet {
            return None;
        }
        let SlotState { mode, epoch } = self.slot;
        if mode == Mode::Shut {
            return Some(Reply::Moved { epoch });
        }
        // Repeats too: in grace, the token in a renewal decides which holder puts its record back.
        let retry_after = self.grace_left();
        if retry_after.is_zero() {
            return None;
        }
        Some(match mode {
            Mode::Sealed => Reply::Moving { epoch, left: None },
            _ => Reply::Grace { retry_after },
        })
    }

    /// How many shares of the key, all of `kind`, are held at the slot's former shard, at most. `ask` may bring a
    /// proof. `None`: not known, or nothing is granted here.
    fn left(&self, kind: LockKind, ask: Option<&Ask<'_>>) -> Option<u32> {
        let SlotState { mode, epoch } = self.slot();
        match mode {
            Mode::Open => Some(0),
            Mode::Import => {
                // The former shard proves nothing to a request of another kind than its holders.
                let ask = ask.filter(|ask| ask.mode.kind() == kind);
                let proof = ask.and_then(|ask| ask.proof);
                let proof = proof.filter(|proof| proof.epoch == epoch);
                let import = self.import.as_ref()?;
                import.left(self.key, proof.map(|proof| proof.left))
            }
            Mode::Sealed | Mode::Shut => None,
        }
    }

    /// Whether there is room for `mode` beside the holders here and `left` shares elsewhere.
    fn fits(&self, mode: LockMode, left: u32) -> bool {
        let sum = match self.held() {
            Some(LockKind::Mutex) => return false,
            Some(held) if held != mode.kind() => return false,
            held => held.map_or(0, |_| self.sum()),
        };
        u64::from(left) + sum + u64::from(mode.shares()) <= u64::from(mode.capacity())
    }

    /// The kind of the live records.
    fn held(&self) -> Option<LockKind> {
        self.lock.held(self.armed, self.now_ms)
    }

    /// How many shares are held here.
    fn sum(&self) -> u64 {
        let shares = self.lock.shares.as_ref();
        shares.map_or(0, |shares| shares.sum(self.armed, self.now_ms))
    }

    /// The live record of a mutex.
    fn live(&self) -> Option<&Entry> {
        self.lock.live(self.armed, self.now_ms)
    }

    /// Whether another client waits for the key.
    fn contended(&self) -> bool {
        self.lock.queue(self.now_ms).is_some()
    }

    /// Writes a record and its end. Replaces the record of a mutex, and all records of another kind.
    fn write(&mut self, record: Record, (kind, shares): (LockKind, u32), lease: Duration) {
        let entry = Entry {
            since_ms: self.lock.since(record.nonce, self.armed, self.now_ms),
            record,
            shares,
            expires: self.end_of(lease),
        };
        let lock = &mut *self.lock;
        if kind == LockKind::Mutex {
            lock.record = Some(entry);
            lock.shares = None;
            return;
        }
        lock.record = None;
        lock.shares.take_if(|shares| shares.kind != kind);
        let shares = lock
            .shares
            .get_or_insert_with(|| Box::new(Shares::new(kind)));
        shares.write(entry);
    }

    fn end_of(&self, length: Duration) -> End {
        let length_ms = self.slack_ms.saturating_add(millis(length));
        End::after(length_ms, self.now_ms)
    }
}
