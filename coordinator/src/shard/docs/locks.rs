//! The documents of the locks of one batch.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    known::Recalled,
    store::{Document, Expected, Name, Write},
};
use crate::{
    clock::Moment,
    ids::Nonce,
    name::LockKey,
    shard::{
        ShardError,
        rules::{self, LockState, Stays, ToRead, codec},
    },
};

/// The locks that a batch is about: as they were read, and as the rules left them.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<LockKey, Lock>);

#[derive(Debug)]
struct Lock {
    version: Expected,
    /// The last millisecond at which the document says something.
    ends_ms: u64,
    /// What was read of its waiters.
    stays: Stays,
    before: LockState,
    now: LockState,
    /// All requests for it were told to wait, by a document that was read for them and not recalled.
    keeps_waiting: bool,
    was_read: bool,
}

impl Lock {
    fn new(version: Expected, before: LockState, was_read: bool) -> Self {
        let now = before.clone();
        Self {
            version,
            ends_ms: before.ends_ms().unwrap_or(0),
            stays: Stays::new(),
            before,
            now,
            keeps_waiting: false,
            was_read,
        }
    }

    /// The document of a waiter that asked again, if nothing else has changed, and the lock's is not to be forgotten.
    fn changed_stay(&self, key: &LockKey, now_ms: u64) -> Option<Write> {
        let lasts = self.keeps_waiting && self.ends_ms >= now_ms;
        let (nonce, stay) = lasts.then(|| self.now.changed_stay(&self.before))??;
        Some(Write {
            name: Name::Ticket(key.clone(), nonce),
            // An earlier request's, put late, ends sooner, and is no worse. A store counts what it makes.
            expected: match self.stays.get(&nonce) {
                Some(None) => Expected::Absent,
                _ => Expected::Any,
            },
            content: codec::stay_text(stay),
            ends_ms: Some(stay.ends.at_ms),
        })
    }
}

impl Locks {
    /// Puts a document in, as it was read.
    pub(super) fn read(
        &mut self,
        key: LockKey,
        document: Option<&Document>,
    ) -> Result<(), ShardError> {
        let (version, before) = match document {
            None => (Expected::Absent, LockState::default()),
            Some(Document { version, content }) => (
                Expected::Version(*version),
                codec::lock(content).map_err(super::view::malformed)?,
            ),
        };
        self.0.insert(key, Lock::new(version, before, true));
        Ok(())
    }

    /// Puts a document in, as it is known without a read.
    pub(super) fn recall(&mut self, key: LockKey, known: Recalled) {
        let Recalled { version, state, .. } = known;
        self.0.insert(key, Lock::new(version, state, false));
    }

    /// The locks that somebody may wait for.
    pub(super) fn queued(&self) -> impl Iterator<Item = (&LockKey, &LockState)> {
        let locks = self.0.iter().map(|(key, lock)| (key, &lock.now));
        locks.filter(|(_, lock)| lock.waiters() > 0)
    }

    /// The waiters whose tickets are to be read: at most `most` of a lock.
    pub(super) fn unread(
        &self,
        to_read: &BTreeMap<LockKey, ToRead>,
        at: (u64, Option<&Moment>),
        most: usize,
    ) -> Vec<(LockKey, Nonce)> {
        let unread = to_read.iter().flat_map(|(key, to_read)| {
            let lock = self.0.get(key).into_iter();
            let unread = lock.flat_map(|lock| lock.now.unread(&lock.stays, *to_read, at));
            unread.map(|nonce| (key.clone(), nonce)).take(most)
        });
        unread.collect()
    }

    /// Puts the document of a waiter in, as it was read.
    pub(super) fn read_stay(
        &mut self,
        key: &LockKey,
        nonce: Nonce,
        document: Option<&Document>,
    ) -> Result<(), ShardError> {
        let stay = document.map(|document| codec::stay(&document.content));
        let stay = stay.transpose().map_err(super::view::malformed)?;
        if let Some(lock) = self.0.get_mut(key) {
            lock.stays.insert(nonce, stay);
        }
        Ok(())
    }

    /// All was read that is to be known of the waiters.
    pub(super) fn put_stays(&mut self) {
        for lock in self.0.values_mut() {
            lock.before.put_stays(&lock.stays);
            lock.now.put_stays(&lock.stays);
        }
    }

    /// The lock of `key`.
    pub(super) fn get(&self, key: &LockKey) -> Option<&LockState> {
        self.0.get(key).map(|lock| &lock.now)
    }

    /// Limits every end, as [`LockState::limit_ends`] does.
    pub(super) fn limit_ends(&mut self, now_ms: u64, slack_ms: u64) {
        let locks = self.0.values_mut();
        locks.for_each(|lock| lock.now.limit_ends(now_ms, slack_ms));
    }

    /// Ends what was unchanged for too long, as [`LockState::end_unchanged`] does.
    pub(super) fn end_unchanged(&mut self, moment: &Moment) {
        let locks = self.0.values_mut();
        locks.for_each(|lock| lock.now.end_unchanged(moment));
    }

    /// All requests for `these` were told to wait.
    pub(super) fn keep_waiting(&mut self, these: &BTreeSet<&LockKey>) {
        for (key, lock) in &mut self.0 {
            lock.keeps_waiting = lock.was_read && these.contains(key);
        }
    }

    /// Keeps when the `refused` locks were seen as they are, and forgets it of those that were extended, or have changed.
    pub(super) fn see(
        &mut self,
        refused: &BTreeSet<&LockKey>,
        extended: &BTreeSet<&LockKey>,
        (now_ms, moment): (u64, Option<&Moment>),
    ) {
        for (key, lock) in &mut self.0 {
            // A waiter that asks again stays, and sees the clock.
            let asks_again = lock.changed_stay(key, now_ms).is_some();
            let moment = moment.filter(|_| refused.contains(key) && !asks_again);
            lock.now.see(&lock.before, extended.contains(key), moment);
        }
    }

    /// The last millisecond at which the same records count as at `now_ms`.
    pub(super) fn unchanged_until(&self, now_ms: u64) -> u64 {
        let locks = self.0.values();
        let ends = locks.flat_map(|lock| lock.before.record_ends_ms());
        let ahead = ends.filter(|ends_ms| *ends_ms >= now_ms);
        ahead.min().unwrap_or(u64::MAX)
    }

    /// The documents that the rules left unchanged, and the versions that were read. Not those of locks that are waited for
    /// alone: `held` was true when they were read.
    pub(super) fn checks(&self) -> impl Iterator<Item = (Name, Expected)> {
        let unchanged = self.0.iter().filter(|(_, lock)| lock.before == lock.now);
        let depended_on = unchanged.filter(|(_, lock)| !lock.keeps_waiting);
        depended_on.map(|(key, lock)| (Name::Lock(key.clone()), lock.version))
    }

    /// The locks that the rules changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&LockKey, &LockState)> {
        let changed = self.0.iter().filter(|(_, lock)| lock.before != lock.now);
        changed.map(|(key, lock)| (key, &lock.now))
    }

    /// The documents that the rules changed. One that says nothing any more ends at once. Waiters that asked again have theirs.
    pub(super) fn writes(&self, now_ms: u64) -> impl Iterator<Item = Write> {
        let changed = self.0.iter().filter(|(_, lock)| lock.before != lock.now);
        changed.map(move |(key, lock)| {
            lock.changed_stay(key, now_ms).unwrap_or_else(|| Write {
                name: Name::Lock(key.clone()),
                expected: lock.version,
                content: codec::lock_text(&lock.now),
                ends_ms: Some(lock.now.ends_ms().unwrap_or(now_ms)),
            })
        })
    }
}

impl rules::Locks for Locks {
    fn change<T>(
        &mut self,
        key: &LockKey,
        _now_ms: u64,
        change: impl FnOnce(&mut LockState) -> T,
    ) -> T {
        let lock = self.0.get_mut(key);
        change(
            &mut lock
                .expect("the documents of the whole batch were read")
                .now,
        )
    }
}
