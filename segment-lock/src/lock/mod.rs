//! N locks of one name, for data of one's own that is split in N rows.
//!
//! ```text
//! SegmentedLock ─ any() a free one, at(i) a given one, all() every one
//!    │  Split: how many there are, and where   (one record, compare-and-swap)
//!    ▼
//! Locks ─ sub-lock i of "stock/7" is the lock "stock/7#i.p", p chosen so that they are spread
//! ```
//!
//! `any()` [chooses](choice::choose) by what this process knows: it goes back to the sub-lock it had last, if that is
//! free, and waits where least is going on, if none is. A sub-lock is an ordinary lock, and as fair.
//!
//! # How many there are may change meanwhile
//!
//! The record says how many sub-locks were ever **made**, and how many of them are **used**.
//! `any()` chooses among those used, `all()` takes all that were made. So a process with an old
//! record does no harm: it chooses among fewer, or has one that is no longer used, for which
//! `all()` waits like for the others. A swap of the record alone changes the number used, up to the
//! number made. Making sub-locks is the critical step: a holder of *all* would not have the new
//! ones, and another process could hold one. The promise is
//!
//! > as long as somebody has all sub-locks, there are no others.
//!
//! * `all()` takes sub-lock 0, 1, 2, … and so on; then reads the record, takes all others that were made, and **confirms**: it
//!   writes the record again, its version raised, with its token of sub-lock 0.
//! * A process that makes more takes sub-lock 0, reads the record, and writes it with more, and with its own token.
//! * Neither writes if the record has seen a greater token than its own, nor if the record has changed since it was
//!   read: the record is fenced, like any resource should be.
//!
//! *Why that is right.* Let A have all, confirmed by its write a, and let Z make more by its write z. If z came before a, it
//! came before A's last reading too, or a would have failed: A took what Z made. If z came after a, then so did Z's
//! last reading, or z would have failed. There Z saw A's token, or a greater one, and its own was not smaller. Two
//! grants of sub-lock 0 have two tokens, so Z's is greater, and later: A had released sub-lock 0 by then, or lost it, and
//! had not all any more. No clock is in this: Z may have been paused anywhere, its lease long over; and a write of
//! its that was on the way when it died comes before A's reading, or fails.
//!
//! *Two `all()`* exclude each other at sub-lock 0. The ascending order prevents deadlock among
//! them, and with a process that takes single sub-locks upwards. *Fewer in use at once:* that swap
//! makes a confirmation fail; it reads again, and confirms. A holder of one sub-lock that asks for
//! `all()` waits for itself, as with any lock.
//!
//! The record is data, and as durable as its [`Durability`] says. If it was lost with its shard,
//! calls that need it answer [`SegmentedLockError::NoLock`], and the next creation must not use a
//! smaller number than before.

pub mod choice;

mod all;
mod any;
mod deadline;
mod error;
mod guard;
mod knowledge;
mod locks;
mod one;
mod record;
mod resize;
mod split;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

pub use all::All;
pub use any::Any;
pub use error::SegmentedLockError;
pub use guard::{AllGuard, SegmentGuard};
pub use knowledge::Contention;
pub use locks::{Held, LockError, Locks, Waited};
pub use one::One;
pub use resize::Resize;
pub use split::{Split, key};

use crate::{Account, Durability, Manifests};
use deadline::Deadline;
use knowledge::Knowledge;
use record::Record;

/// A lock that is split in sub-locks. Cheap to clone; clones share what they know of it.
///
/// Keep it: which sub-lock was had last, and where others were met, is known by it and its clones alone.
pub struct SegmentedLock<L>(Arc<Inner<L>>);

struct Inner<L> {
    locks: L,
    manifests: Arc<dyn Manifests<Split>>,
    name: Account,
    knowledge: Arc<Knowledge>,
    /// The newest record read, and when.
    record: Mutex<Option<Record>>,
}

impl<L> Clone for SegmentedLock<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L> fmt::Debug for SegmentedLock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentedLock")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl<L: Locks> SegmentedLock<L> {
    /// A segmented lock that exists, or will be found not to. `first`: the sub-lock that `any` begins with, modulo
    /// their number; a random one, so that not all processes begin with the same.
    pub fn open(locks: L, manifests: Arc<dyn Manifests<Split>>, name: Account, first: u32) -> Self {
        Self(Arc::new(Inner {
            locks,
            manifests,
            name,
            knowledge: Knowledge::new(first),
            record: Mutex::new(None),
        }))
    }

    /// Creates it with so many sub-locks, if it does not exist; if it does, it is left as it is.
    ///
    /// # Errors
    ///
    /// A number out of range, or the record's storage gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it created, or not.
    pub async fn create(
        &self,
        segments: u32,
        durability: Durability,
    ) -> Result<(), SegmentedLockError> {
        let Inner {
            manifests, name, ..
        } = &*self.0;
        let created = Split::new(segments, durability, self.place())?;
        if manifests.read(name).await?.is_none() {
            manifests.swap(name, 0, created).await?;
        }
        self.newest().await.map(drop)
    }

    /// Its name.
    pub fn name(&self) -> &Account {
        &self.0.name
    }

    /// A free sub-lock, whichever it is.
    pub fn any(&self) -> Any<'_, L> {
        Any::of(self)
    }

    /// Sub-lock `segment`, from 0.
    pub fn at(&self, segment: u32) -> One<'_, L> {
        One::of(self, segment)
    }

    /// Every sub-lock at once.
    pub fn all(&self) -> All<'_, L> {
        All::of(self)
    }

    /// Changes how many sub-locks are in use, while all goes on.
    pub fn resize(&self, segments: u32) -> Resize<'_, L> {
        Resize::of(self, segments)
    }

    /// The record as it is.
    ///
    /// # Errors
    ///
    /// It was not created, or the record's storage gave no answer.
    pub async fn split(&self) -> Result<Split, SegmentedLockError> {
        Ok(self.newest().await?.manifest.clone())
    }

    /// What this process met at each sub-lock that it knows of, by this and its clones.
    pub fn contention(&self) -> Vec<Contention> {
        let record = self.0.record.lock();
        let made = record.as_ref().map_or(0, Record::made);
        self.0.knowledge.contention(made)
    }

    /// Where the locks want more of them.
    fn place(&self) -> impl FnOnce(&[u32], u32) -> Vec<u32> {
        |taken, more| self.0.locks.place(&self.0.name, taken, more)
    }

    /// The key of `segment`, by `split`.
    fn key(&self, split: &Split, segment: u32) -> Result<String, SegmentedLockError> {
        let key = split.key_of(self.0.name.as_str(), segment);
        key.ok_or(SegmentedLockError::NoSegment {
            segment,
            made: split.made(),
        })
    }

    /// Takes one that is known by its number, by `split`; now or never, if there is no `wait`.
    async fn take(
        &self,
        split: &Split,
        segment: u32,
        wait: Option<Deadline>,
    ) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let key = self.key(split, segment)?;
        let presence = self.0.knowledge.enter(segment);
        let failed = |error| SegmentedLockError::NotAcquired { segment, error };
        let Some(deadline) = wait else {
            let tried = self.0.locks.try_acquire(&key).await.map_err(failed)?;
            let Some(guard) = tried else {
                presence.refused();
                return Err(SegmentedLockError::Held { segment });
            };
            presence.granted(false);
            return Ok(SegmentGuard::new(guard, presence));
        };
        let wait = deadline.left();
        let taken = self.0.locks.acquire(&key, wait).await.map_err(failed)?;
        presence.granted(taken.had_to_wait);
        Ok(SegmentGuard::new(taken.guard, presence))
    }
}
