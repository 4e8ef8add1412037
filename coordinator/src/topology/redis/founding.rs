//! What a topology is founded with, where there is none yet.

use std::{fmt, sync::Arc, time::Duration};

use ringfence_ring::{SlotCount, Weight};

use crate::{ids::Epoch, shard::redis::Address, topology::Constants};

/// What to found, if the servers carry no topology yet, and how patiently.
///
/// Of a topology that is there already nothing changes: it stays as it was founded.
#[derive(Clone, Debug)]
pub struct Founding {
    /// Whether to found a topology at all, or only to look for one.
    pub allowed: bool,
    /// Whether each seed that answers must be a member, or must have been one.
    pub members_only: bool,
    /// The greatest epoch that is known to have been used, where no trace of it is left.
    pub after: Epoch,
    /// What stays as it is for good.
    pub constants: Constants,
    /// How many slots keys are spread over.
    pub slots: SlotCount,
    /// The servers' parts of the slots, in the seeds' order; 1 each where none is given.
    pub weights: Vec<Weight>,
    /// A server of its own for the record; none: the first of the members by `run_id`. Whoever is
    /// not given it finds it by the members' pointers, and logs in there as at the first seed.
    pub home: Option<Address>,
    /// How long to go on trying.
    pub within: Duration,
    /// How often the record is read again, at least half and at most all of this apart, by whoever watches
    /// it: its home says at once what is new, but may not be heard.
    pub watch_every: Duration,
    /// Is told every step of a founding, and of a recovery later on, before the next is begun.
    pub observer: Observer,
}

impl Default for Founding {
    /// Allowed, with default constants and slots, weight 1, no home of its own, 10 s, and a look every 2 s.
    fn default() -> Self {
        Self {
            allowed: true,
            members_only: false,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            weights: Vec::new(),
            home: None,
            within: Duration::from_secs(10),
            watch_every: Duration::from_secs(2),
            observer: Observer::default(),
        }
    }
}

/// A step towards a topology in use, or in use again. A process may end after any of them, and
/// others go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every seed was looked at, none carries a trace, and the claim is about to be sent.
    Claiming {
        /// The home to be.
        home: String,
    },
    /// The home has a record, in creation, of a topology nobody can use yet.
    Claimed {
        /// The topology's id.
        id: String,
    },
    /// A member has its pointer.
    Joined {
        /// Its address.
        address: String,
    },
    /// The record is active; no other member has a copy yet.
    Activated {
        /// The topology's id.
        id: String,
    },
    /// The record is gone, as it could not be finished.
    Voided {
        /// The topology's id.
        id: String,
    },
    /// A member lets nothing of an earlier incarnation take effect any more. The home is the first.
    Fenced {
        /// Its address.
        address: String,
    },
    /// The newest record that is left is about to be put in force again.
    Restoring {
        /// Its version.
        version: u64,
    },
}

/// Is told the steps of a founding or a recovery. For tests: one that does not return holds the founding up
/// between two steps, as a process that is stopped there would be.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Observe>>);

type Observe = dyn Fn(&Step) + Send + Sync;

impl Observer {
    /// Calls `observe` for every step.
    pub fn new(observe: impl Fn(&Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(super) fn tell(&self, step: Step) {
        tracing::debug!(?step, "topology");
        if let Some(observe) = &self.0 {
            observe(&step);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() {
            "Observer"
        } else {
            "Observer(none)"
        })
    }
}
