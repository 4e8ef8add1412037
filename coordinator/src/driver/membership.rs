//! A shard's standing in the topology: whether its answers count.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use tokio::sync::watch;

use crate::{
    ids::{Epoch, Life},
    shard::Notification,
};

/// Whether a shard's answers count. It decides when an answer arrives, also about requests sent
/// before.
#[derive(Debug)]
pub(super) struct Membership {
    dismissed: AtomicBool,
    present: watch::Sender<Present>,
}

/// The life of a shard that the topology names.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) life: Life,
    /// The epoch with which it is armed, or will be.
    pub(super) epoch: Epoch,
    /// The last observation.
    seen: Option<(Life, Epoch)>,
}

impl Present {
    /// Whether the life was seen to be armed with its epoch, or with one that the topology is about
    /// to name.
    fn is_armed(&self) -> bool {
        let seen = self.seen.as_ref();
        seen.is_some_and(|(life, epoch)| *life == self.life && *epoch >= self.epoch)
    }
}

impl Membership {
    /// The standing of a shard that the topology names as `life`, with `epoch`.
    pub(super) fn new(life: Life, epoch: Epoch) -> Self {
        let seen = None;
        Self {
            dismissed: AtomicBool::new(false),
            present: watch::Sender::new(Present { life, epoch, seen }),
        }
    }

    /// The shard is no longer a member.
    pub(super) fn dismiss(&self) {
        self.dismissed.store(true, Release);
    }

    /// The topology names the shard as `life` from now on, with `epoch`. Returns whether it was
    /// seen to be armed with it.
    pub(super) fn name(&self, life: &Life, epoch: Epoch) -> bool {
        self.present.send_if_modified(|present| {
            let changed = present.life != *life || present.epoch != epoch;
            if changed {
                (present.life, present.epoch) = (life.clone(), epoch);
            }
            changed
        });
        self.present.borrow().is_armed()
    }

    /// `life` was seen to be armed with `epoch`.
    pub(super) fn seen_armed(&self, life: &Life, epoch: Epoch) {
        let seen = Some((life.clone(), epoch));
        self.present.send_modify(|present| present.seen = seen);
    }

    /// Whether requests may go to `life`: the topology names it, and it is armed with the epoch
    /// that the topology names. A server in a replaced life may be reached again, still armed as
    /// before.
    pub(super) fn serves(&self, life: &Life) -> bool {
        let present = self.present.borrow();
        present.life == *life && present.is_armed()
    }

    /// Whether answers from `life` count.
    pub(super) fn counts(&self, life: &Life) -> bool {
        !self.dismissed.load(Acquire) && self.present.borrow().life == *life
    }

    /// Whether a notification from `life` counts. A grant made before it was armed anew does not.
    pub(super) fn believes(&self, life: &Life, notification: &Notification) -> bool {
        let epoch = self.present.borrow().epoch;
        let current = match notification {
            Notification::Granted(turn) => turn.token.epoch() >= epoch,
            Notification::Contended { .. } => true,
        };
        current && self.counts(life)
    }

    /// Reports every change.
    pub(super) fn watch(&self) -> watch::Receiver<Present> {
        self.present.subscribe()
    }

    /// The epoch that the topology names.
    pub(super) fn epoch(&self) -> Epoch {
        self.present.borrow().epoch
    }
}
