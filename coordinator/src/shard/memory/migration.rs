//! Slots that change hands: a mover's questions.

use super::{inspect::Page, state::Memory};
use crate::{
    limits::SCAN_PAGE,
    name::LockKey,
    shard::{
        HeldStill, Scan, ScanPage, ShardError, StillHeld,
        rules::{self, Locks as _},
    },
};

impl Memory {
    /// A page of the keys that are held in sealed slots.
    pub(super) fn scan(&self, scan: &Scan, now_ms: u64) -> Result<ScanPage, ShardError> {
        let armed = self.whole.head.armed()?;
        let grace_left = armed.grace.left(now_ms);
        if !grace_left.is_zero() {
            return Ok(ScanPage {
                grace_left,
                held: Vec::new(),
                next: None,
            });
        }
        let Page { locks, next } = self.page(scan.after.as_ref(), SCAN_PAGE, "scan")?;
        Ok(ScanPage {
            grace_left,
            held: rules::scan(armed, &self.whole.slots, scan.epoch, locks, now_ms),
            next,
        })
    }

    /// As [`rules::still_held`].
    pub(super) fn still_held(
        &mut self,
        still: &StillHeld,
        now_ms: u64,
    ) -> Result<HeldStill, ShardError> {
        let armed = self.whole.head.armed()?;
        for key in &still.keys {
            self.locks
                .change(key, now_ms, |lock| lock.limit_ends(now_ms, 0));
        }
        let is_held = |key: &LockKey| {
            let lock = self.locks.get(key);
            lock.is_some_and(|lock| lock.held(armed, now_ms).is_some())
        };
        Ok(rules::still_held(
            armed,
            &self.whole.slots,
            still,
            is_held,
            now_ms,
        ))
    }
}
