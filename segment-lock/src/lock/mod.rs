//! N locks of one name, for your own data that is split into N rows.
//!
//! ```text
//! SegmentedLock ─ any() a free one, at(i) a given one, all() every one
//!    │  Split: their number and their places   (one record, compare-and-swap)
//!    ▼
//! Locks ─ sub-lock i of "stock/7" is the lock "stock/7#i.p", p chosen so that they are spread
//! ```
//!
//! `any()` [chooses](choice::choose) by the knowledge of this process: it takes the sub-lock it had last, if that is
//! free; if none is free, it waits at the least loaded one. A sub-lock is an ordinary lock, and as fair.
//!
//! # The number of sub-locks may change during use
//!
//! The record has the number of sub-locks that were ever **made**, and the number in **use**. `any()` chooses among
//! those in use; `all()` takes all that were made. So a process with an old record does no harm: it chooses among
//! fewer, or has one that is no longer in use, for which `all()` waits like for the others. A swap of the record alone
//! changes the number in use, up to the number made. Making sub-locks is the critical step: a holder of *all* would not
//! have the new ones, and another process could hold one. The promise is
//!
//! > while a holder has all sub-locks, no others exist.
//!
//! * `all()` takes sub-lock 0, 1, 2, … and so on; then reads the record, takes all others that were made, and **confirms**: it
//!   writes the record again, its version raised, with its token of sub-lock 0.
//! * A process that makes more takes sub-lock 0, reads the record, and writes it with more, and with its own token.
//! * Neither writes if the record has seen a greater token than its own, nor if the record has changed since it was
//!   read: the record is fenced, like any resource should be.
//!
//! *Proof.* Let A have all, confirmed by its write a, and let Z make more by its write z. If z came before a, it came
//! before A's last read too, or a would have failed: A took the sub-locks that Z made. If z came after a, then so did
//! Z's last read, or z would have failed. In that read Z saw A's token, or a greater one, and its own was not smaller.
//! Two grants of sub-lock 0 have two tokens, so Z's is greater, and later: A had released or lost sub-lock 0 by then,
//! and no longer had all. The proof uses no clock: Z may have been paused anywhere, with its lease long over. A write
//! of Z that was in flight when Z died comes before A's read, or fails.
//!
//! *Two calls of `all()`* exclude each other at sub-lock 0. The ascending order prevents deadlock among them, and with
//! a process that acquires single sub-locks in ascending order. *Fewer in use:* that swap makes a confirmation fail;
//! `all()` reads again, and confirms. A holder of one sub-lock that calls `all()` waits for itself, as with any lock.
//!
//! The record is data, and as durable as its [`Durability`]. If it was lost with its shard, calls that need it return
//! [`SegmentedLockError::NoLock`], and it must be created again with at least the former number.

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
pub use split::{Split, key, parse_key};

use crate::{Account, Durability, Manifests};
use deadline::Deadline;
use knowledge::Knowledge;
use record::Record;

/// A lock that is split into sub-locks. Cheap to clone; clones share their knowledge of it.
///
/// Keep it: only this value and its clones know which sub-lock was last held, and where other holders were met.
pub struct SegmentedLock<L>(Arc<Inner<L>>);

struct Inner<L> {
    locks: L,
    manifests: Arc<dyn Manifests<Split>>,
    name: Account,
    knowledge: Arc<Knowledge>,
    /// The newest record read, and the time of that read.
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
    /// A segmented lock. The first call checks that it exists. `first`: the sub-lock with which `any` begins, modulo
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

    /// Creates it with this many sub-locks. If it exists, it stays as it is.
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

    /// Any free sub-lock.
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

    /// Changes the number of sub-locks in use, during normal use.
    pub fn resize(&self, segments: u32) -> Resize<'_, L> {
        Resize::of(self, segments)
    }

    /// Reads the record.
    ///
    /// # Errors
    ///
    /// It was not created, or the record's storage gave no answer.
    pub async fn split(&self) -> Result<Split, SegmentedLockError> {
        Ok(self.newest().await?.manifest.clone())
    }

    /// The contention that this value and its clones met at each known sub-lock.
    pub fn contention(&self) -> Vec<Contention> {
        let record = self.0.record.lock();
        let made = record.as_ref().map_or(0, Record::made);
        self.0.knowledge.contention(made)
    }

    /// Chooses the places of more sub-locks.
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

    /// Acquires a sub-lock by its number; without `wait`, now or not at all.
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
