//! The terms of a founding, if there is no topology yet.

use std::{fmt, sync::Arc, time::Duration};

use ringfence_ring::{SlotCount, Weight, Zone};

use crate::{
    ids::Epoch,
    shard::ServerAddress,
    topology::{Constants, Namespaces},
};

/// The topology to found, if the servers carry none yet, and the patience.
///
/// An existing topology never changes by this.
#[derive(Clone, Debug)]
pub struct Founding {
    /// Whether to found a topology at all, or only to look for one.
    pub allowed: bool,
    /// Whether each seed that answers must be a member, or must have been one.
    pub members_only: bool,
    /// The greatest epoch that is known to have been used without leaving a trace.
    pub after: Epoch,
    /// The constants, which never change.
    pub constants: Constants,
    /// The number of slots.
    pub slots: SlotCount,
    /// The servers' weights, in the seeds' order; 1 each if none is given.
    pub weights: Vec<Weight>,
    /// The servers' zones, in the seeds' order; no zones if none is given.
    pub zones: Vec<Zone>,
    /// Namespaces with a declared number of replicas.
    pub namespaces: Namespaces,
    /// A separate server for the record; none: the first of the members by `run_id`. A process that
    /// is not given this server finds it by the members' pointers, and logs in there as at the
    /// first seed.
    pub home: Option<ServerAddress>,
    /// How long to keep trying.
    pub within: Duration,
    /// How often a watcher reads the record again, with an interval between half of this and all of
    /// it: the home announces a new record at once, but the message may be lost.
    pub watch_every: Duration,
    /// Receives every step of a founding, and of a later recovery, before the next step begins.
    pub observer: Observer,
}

impl Default for Founding {
    /// Allowed, with default constants and slots, weight 1, no separate home, 10 s, and a look
    /// every 5 s.
    fn default() -> Self {
        Self {
            allowed: true,
            members_only: false,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            weights: Vec::new(),
            zones: Vec::new(),
            namespaces: Namespaces::default(),
            home: None,
            within: Duration::from_secs(10),
            watch_every: Duration::from_secs(5),
            observer: Observer::default(),
        }
    }
}

/// A step towards a topology in use, or in use again. A process may end after any step, and others
/// continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every seed was asked, none carries a trace, and the claim is about to be sent.
    Claiming {
        /// The chosen home.
        home: String,
    },
    /// The home has a record, in creation, of a topology that cannot be used yet.
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
    /// The record was removed, because it could not be finished.
    Voided {
        /// The topology's id.
        id: String,
    },
    /// No request of an earlier incarnation takes effect at a member any more. The home is the
    /// first.
    Fenced {
        /// Its address.
        address: String,
    },
    /// The newest remaining record is about to be put in force again.
    Restoring {
        /// Its version.
        version: u64,
    },
}

/// Receives the steps of a founding or a recovery. For tests: an observer that does not return
/// holds the founding up between two steps, like a stopped process.
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
