//! The shard of a lease: nearly always the shard that was asked first.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use arc_swap::{ArcSwap, Guard};

use super::renewer::LeaseRenewer;

/// The present shard of a lease. The changeable part is made only when it changes: making and
/// dropping it costs as much as the rest of a lease.
pub(crate) struct CurrentShard {
    first: Arc<LeaseRenewer>,
    later: OnceLock<ArcSwap<LeaseRenewer>>,
}

/// The renewer found there.
pub(crate) enum Found<'a> {
    First(&'a Arc<LeaseRenewer>),
    Later(Guard<Arc<LeaseRenewer>>),
}

impl CurrentShard {
    pub(crate) fn new(first: Arc<LeaseRenewer>) -> Self {
        Self {
            first,
            later: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Found<'_> {
        match self.later.get() {
            None => Found::First(&self.first),
            Some(later) => Found::Later(later.load()),
        }
    }

    pub(crate) fn set(&self, renewer: &Arc<LeaseRenewer>) {
        let later = self.later.get_or_init(|| ArcSwap::new(renewer.clone()));
        later.store(renewer.clone());
    }
}

impl Deref for Found<'_> {
    type Target = Arc<LeaseRenewer>;

    fn deref(&self) -> &Arc<LeaseRenewer> {
        match self {
            Self::First(renewer) => renewer,
            Self::Later(renewer) => renewer,
        }
    }
}

impl fmt::Debug for CurrentShard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().driver.id().fmt(formatter)
    }
}
