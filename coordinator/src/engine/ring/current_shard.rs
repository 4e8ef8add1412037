//! The shard of a lease: nearly always the shard that was asked first.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use arc_swap::{ArcSwap, Guard};

/// The present shard of a lease. The changeable part is made only when it changes: making and
/// dropping it costs as much as the rest of a lease.
pub(crate) struct CurrentShard<S> {
    first: Arc<S>,
    later: OnceLock<ArcSwap<S>>,
}

/// The shard found there.
pub(crate) enum Found<'a, S> {
    First(&'a Arc<S>),
    Later(Guard<Arc<S>>),
}

impl<S> CurrentShard<S> {
    pub(crate) fn new(first: Arc<S>) -> Self {
        Self {
            first,
            later: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Found<'_, S> {
        match self.later.get() {
            None => Found::First(&self.first),
            Some(later) => Found::Later(later.load()),
        }
    }

    pub(crate) fn set(&self, shard: &Arc<S>) {
        let later = self.later.get_or_init(|| ArcSwap::new(shard.clone()));
        later.store(shard.clone());
    }
}

impl<S> Deref for Found<'_, S> {
    type Target = Arc<S>;

    fn deref(&self) -> &Arc<S> {
        match self {
            Self::First(shard) => shard,
            Self::Later(shard) => shard,
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for CurrentShard<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}
