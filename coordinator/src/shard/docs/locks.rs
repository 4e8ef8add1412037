//! The documents of the locks of one batch.

use std::collections::{BTreeMap, BTreeSet};

use super::store::{Document, Expected, Name, Write};
use crate::{
    clock::Moment,
    name::LockKey,
    shard::{
        ShardError,
        rules::{self, LockState, codec},
    },
};

/// The locks that a batch is about: as they were read, and as the rules left them.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<LockKey, Lock>);

#[derive(Debug)]
struct Lock {
    version: Expected,
    before: LockState,
    now: LockState,
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
        self.put(key, version, before);
        Ok(())
    }

    /// Puts a document in, as it is known.
    pub(super) fn put(&mut self, key: LockKey, version: Expected, before: LockState) {
        let now = before.clone();
        let lock = Lock {
            version,
            before,
            now,
        };
        self.0.insert(key, lock);
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

    /// Keeps when the `refused` locks were seen as they are, and forgets it of those that were extended, or have changed.
    pub(super) fn see(
        &mut self,
        refused: &BTreeSet<&LockKey>,
        extended: &BTreeSet<&LockKey>,
        moment: Option<&Moment>,
    ) {
        for (key, Lock { before, now, .. }) in &mut self.0 {
            let moment = moment.filter(|_| refused.contains(key));
            now.see(before, extended.contains(key), moment);
        }
    }

    /// The last millisecond at which the same records count as at `now_ms`.
    pub(super) fn unchanged_until(&self, now_ms: u64) -> u64 {
        let locks = self.0.values();
        let ends = locks.flat_map(|lock| lock.before.record_ends_ms());
        let ahead = ends.filter(|ends_ms| *ends_ms >= now_ms);
        ahead.min().unwrap_or(u64::MAX)
    }

    /// The documents that the rules left unchanged, and the versions that were read.
    pub(super) fn checks(&self) -> impl Iterator<Item = (Name, Expected)> {
        let unchanged = self.0.iter().filter(|(_, lock)| lock.before == lock.now);
        unchanged.map(|(key, lock)| (Name::Lock(key.clone()), lock.version))
    }

    /// The locks that the rules changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&LockKey, &LockState)> {
        let changed = self.0.iter().filter(|(_, lock)| lock.before != lock.now);
        changed.map(|(key, lock)| (key, &lock.now))
    }

    /// The documents that the rules changed. One that says nothing any more ends at once.
    pub(super) fn writes(&self, now_ms: u64) -> impl Iterator<Item = Write> {
        let changed = self.0.iter().filter(|(_, lock)| lock.before != lock.now);
        changed.map(move |(key, lock)| Write {
            name: Name::Lock(key.clone()),
            expected: lock.version,
            content: codec::lock_text(&lock.now),
            ends_ms: Some(lock.now.ends_ms().unwrap_or(now_ms)),
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
