//! Holders and waiters.

use super::state::Memory;
use crate::{
    limits::LIST_PAGE,
    name::LockKey,
    shard::{Cursor, Inspection, List, LockPage, ShardError, rules::LockState},
};

/// Some of the documents of locks, in the order of their keys.
pub(super) struct Page<'a> {
    pub(super) locks: Vec<(&'a LockKey, &'a LockState)>,
    /// The end of this page, unless it is the last.
    pub(super) next: Option<Cursor>,
}

impl Memory {
    /// The holder of `key`, and its waiters.
    pub(super) fn inspect(&self, key: &LockKey, now_ms: u64) -> Result<Inspection, ShardError> {
        let armed = self.whole.head.armed()?;
        let found = self.locks.get(key);
        Ok(found.map_or_else(Inspection::default, |lock| lock.inspect(armed, now_ms)))
    }

    /// A page of the locks that are held.
    pub(super) fn list(&self, list: &List, now_ms: u64) -> Result<LockPage, ShardError> {
        let armed = self.whole.head.armed()?;
        let Page { locks, next } = self.page(list.after.as_ref(), LIST_PAGE, "list")?;
        let is_asked = |key: &LockKey| match &list.namespace {
            Some(namespace) => key.namespace() == namespace.as_str(),
            None => true,
        };
        let asked = locks.into_iter().filter(|(key, _)| is_asked(key));
        Ok(LockPage {
            locks: asked
                .filter_map(|(key, lock)| lock.listed(key, armed, now_ms))
                .collect(),
            next,
        })
    }

    /// The next `size` documents with a record after the cursor, for a request called `what`.
    pub(super) fn page(
        &self,
        after: Option<&Cursor>,
        size: usize,
        what: &'static str,
    ) -> Result<Page<'_>, ShardError> {
        let after = after.map(|cursor| key_of(cursor, what)).transpose()?;
        let mut rest = self.locks.after(after.as_ref());
        let locks: Vec<_> = rest.by_ref().take(size).collect();
        let more = rest.next().is_some();
        let last = locks.last().filter(|_| more);
        let next = last.map(|(key, _)| Cursor(key.text().to_vec()));
        Ok(Page { locks, next })
    }
}

/// The key that a page ended with.
fn key_of(Cursor(text): &Cursor, what: &'static str) -> Result<LockKey, ShardError> {
    LockKey::parse(text).ok_or_else(|| ShardError::Refused {
        what,
        reason: "the cursor is another shard's".into(),
    })
}
