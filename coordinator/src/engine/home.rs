//! The shard of a hold: nearly always the shard that was asked first.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use arc_swap::{ArcSwap, Guard};

use super::keeper::Keeper;

/// The present shard of a hold. The changeable part is made only when it changes: making and
/// dropping it costs as much as the rest of a hold.
pub(super) struct Home {
    first: Arc<Keeper>,
    later: OnceLock<ArcSwap<Keeper>>,
}

/// The keeper found there.
pub(super) enum Found<'a> {
    First(&'a Arc<Keeper>),
    Later(Guard<Arc<Keeper>>),
}

impl Home {
    pub(super) fn new(first: Arc<Keeper>) -> Self {
        Self {
            first,
            later: OnceLock::new(),
        }
    }

    pub(super) fn get(&self) -> Found<'_> {
        match self.later.get() {
            None => Found::First(&self.first),
            Some(later) => Found::Later(later.load()),
        }
    }

    pub(super) fn set(&self, keeper: &Arc<Keeper>) {
        let later = self.later.get_or_init(|| ArcSwap::new(keeper.clone()));
        later.store(keeper.clone());
    }
}

impl Deref for Found<'_> {
    type Target = Arc<Keeper>;

    fn deref(&self) -> &Arc<Keeper> {
        match self {
            Self::First(keeper) => keeper,
            Self::Later(keeper) => keeper,
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().driver.id().fmt(formatter)
    }
}
