//! What the topology says of a shard: whose answers count.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

use arc_swap::ArcSwapOption;

use crate::ids::Life;

/// Whether a shard's answers count. What was sent before is judged by it when the answer comes.
#[derive(Debug, Default)]
pub(super) struct Standing {
    dismissed: AtomicBool,
    /// The last life that another has taken the place of.
    replaced: ArcSwapOption<Life>,
}

impl Standing {
    /// The shard is a member no more.
    pub(super) fn dismiss(&self) {
        self.dismissed.store(true, Release);
    }

    /// The shard lives another life than `life` by now.
    pub(super) fn replace(&self, life: Life) {
        self.replaced.store(Some(Arc::new(life)));
    }

    /// Whether `life` is over: a server that was replaced may still be reached over an old connection.
    pub(super) fn is_replaced(&self, life: &Life) -> bool {
        let replaced = self.replaced.load();
        replaced.as_deref() == Some(life)
    }

    /// Whether what `life` answers counts.
    pub(super) fn counts(&self, life: &Life) -> bool {
        !self.dismissed.load(Acquire) && !self.is_replaced(life)
    }
}
