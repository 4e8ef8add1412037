//! Slots that change hands: a mover's questions, and its lists.
//!
//! An answer that a key is not held here is final. So it counts only if a commit finds the documents unchanged: a renewal
//! on its way may save a lock that looks ended.

use std::collections::BTreeSet;

use ringfence_ring::Slot;

use super::{
    attempt::{ATTEMPTS, Changes, Desk, overtaken},
    control::{key_of, states},
    store::TokenChange,
    view::View,
};
use crate::{
    limits::SCAN_PAGE,
    name::LockKey,
    shard::{HeldStill, Mode, Scan, ScanPage, ShardError, SlotState, StillHeld, rules},
};

impl Desk {
    /// A page of the keys that are held in sealed slots.
    pub(super) async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        let after = scan.after.as_ref();
        let after = after.map(|cursor| key_of(cursor, "scan")).transpose()?;
        let page = self.session.page(after.as_ref(), SCAN_PAGE).await?;
        let keys: Vec<LockKey> = page.documents.iter().map(|(key, _)| key.clone()).collect();
        let slots: Vec<Slot> = keys.iter().map(LockKey::slot).collect();
        let sealed = SlotState {
            mode: Mode::Sealed,
            epoch: scan.epoch,
        };
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            self.view = View::default();
            // First the states, then the locks of sealed slots alone: others change all the time.
            self.read(|view| states(view, &slots), &BTreeSet::new(), |_| None)
                .await?;
            let leaves = |key: &&LockKey| self.view.whole.slots.get(key.slot()) == sealed;
            let leaving: BTreeSet<LockKey> = keys.iter().filter(leaves).cloned().collect();
            let read = self
                .read(|view| states(view, &slots), &leaving, |_| None)
                .await?;
            if self.tends_grace(read.now_ms, false).await? {
                continue;
            }
            let armed = self.view.whole.head.armed()?;
            let grace_left = armed.grace.left(read.now_ms);
            if !grace_left.is_zero() {
                return Ok(ScanPage {
                    grace_left,
                    held: Vec::new(),
                    next: None,
                });
            }
            let locks = leaving.iter().filter_map(|key| {
                let lock = read.locks.get(key)?;
                Some((key, lock))
            });
            let slots = &self.view.whole.slots;
            let held = rules::scan(armed, slots, scan.epoch, locks, read.now_ms);
            if self.commit(&read, NOTHING).await?.is_done() {
                return Ok(ScanPage {
                    grace_left,
                    held,
                    next: page.next(),
                });
            }
        }
        Err(overtaken())
    }

    /// As [`rules::still_held`].
    pub(super) async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        let keys: BTreeSet<LockKey> = still.keys.iter().cloned().collect();
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            self.view = View::default();
            let mut read = self
                .read(|view| states(view, &still.slots), &keys, |_| None)
                .await?;
            if self.tends_grace(read.now_ms, false).await? {
                continue;
            }
            read.locks.limit_ends(read.now_ms, self.view.whole.slack_ms);
            let (armed, now_ms) = (self.view.whole.head.armed()?, read.now_ms);
            let is_held = |key: &LockKey| {
                let lock = read.locks.get(key);
                lock.is_some_and(|lock| lock.held(armed, now_ms).is_some())
            };
            let held = rules::still_held(armed, &self.view.whole.slots, still, is_held, now_ms);
            if self.commit(&read, NOTHING).await?.is_done() {
                return Ok(held);
            }
        }
        Err(overtaken())
    }
}

/// A commit that only finds out whether all is as it was.
pub(super) const NOTHING: Changes = Changes {
    writes: Vec::new(),
    tokens: TokenChange::None,
    notifications: Vec::new(),
    announcement: None,
};
