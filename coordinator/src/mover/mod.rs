//! Moves slots from shard to shard, as the topology's goal says, until it is reached.
//!
//! ```text
//!          record            shard A (from)          shard B (to)
//!  plan  ─► CAS: moves, e
//!                              seal e   ─► ack ─►      import e
//!                              its counters ─────►     admit e
//!                              scan: held keys ────►   list e
//! listed ─► CAS: listed        … its holders move themselves, or leave …
//!                              nothing held
//!                              shut e   ◄─ ack ◄─      open e
//! finish ─► CAS, of the version read before open was sent
//! ```
//!
//! | file | content |
//! |---|---|
//! | `orders.rs` | begin, abort |
//! | `run.rs` | the record: moves planned, listed, finished, in one swap per round |
//! | `slot_migration.rs` | the slots of a batch that leave one shard, from the seal to the list |
//! | `copy.rs` | copies blocks of counters before the seal |
//! | `carry.rs` | carries the counters of a batch's slots |
//! | `left.rs` | the keys left at a former shard, until no key is left |
//! | `lives.rs` | the lives of the two shards of a migration |
//! | `finish.rs` | opens the slots at the next shard, then shuts them at the former one |
//! | `opening.rs` | slots of shards that are gone for good |
//! | `declare.rs` | the number of replicas of a namespace |
//! | `shards.rs` | one connection per shard, and the meaning of its errors |
//! | `groups.rs` | requests to a shard about counters |
//! | `pauses.rs` | pauses between these requests, so that callers have most of the shard's time |
//! | `phase.rs` | the phase of a move, for tests |
//! | `progress.rs` | the progress of a resize, for people |
//!
//! The record keeps all state. So any process may repeat any step at any later time, and two movers at
//! once do some steps twice, without harm. A slot is sealed only when both of its shards answer. From
//! then on its move must be finished, or turned back by
//! [`Topology::abort`](crate::topology::Topology::abort).

mod carry;
mod copy;
mod declare;
mod finish;
mod left;
mod lives;
mod opening;
mod orders;
mod pauses;
mod phase;
mod progress;
mod run;
mod shards;
mod slot_migration;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use ringfence_ring::Replicas;
use tokio::{sync::watch, time::sleep};

use self::run::Run;
use crate::{
    clock::Clock,
    limits::{MOVER_PAUSE, SLOTS_IN_FLIGHT},
    name::Namespace,
    random::Random,
    topology::{Dial, Topology, TopologyError, TopologyStore, Weights},
};
pub use declare::NamespaceError;
pub use phase::{Observer, Phase};
pub use progress::{Progress, WaitingFor};

/// Pause before an unreachable topology store is asked again.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// The parts of a mover.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The topology's store.
    pub store: Arc<dyn TopologyStore>,
    /// Opens connections to the shards.
    pub dial: Arc<dyn Dial>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// For jitter.
    pub random: Arc<Random>,
    /// Speed, and how much is in flight.
    pub pace: Pace,
    /// Whether the servers are known to be new: a shard that joins then needs no grace.
    pub servers_are_new: bool,
    /// Observes the phases, for tests.
    pub observer: Observer,
}

/// The speed of a mover, and how much it has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Maximum number of slots migrating at a time; at least 1.
    pub slots_in_flight: usize,
    /// Longest pause between two requests to shards, in which they serve others. A request takes about a fifth of a
    /// millisecond of a shard's time. The pause is shorter after a request that took less than a thirtieth of it.
    pub pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            slots_in_flight: SLOTS_IN_FLIGHT,
            pause: MOVER_PAUSE,
        }
    }
}

/// The context that all parts of a mover share.
#[derive(Clone, Debug)]
struct Context {
    store: Arc<dyn TopologyStore>,
    dial: Arc<dyn Dial>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    servers_are_new: bool,
    observer: Observer,
    pause: Duration,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resized {
    /// Slots that the resize moved, including those moved by other movers.
    pub slots_moved: u32,
    /// Keys that were held when their slots were sealed, and left before they were opened.
    pub locks_carried: u64,
    /// Counters' segments and manifests that this mover carried.
    pub counters_carried: u64,
    /// The version of the record that ends the resize.
    pub version: u64,
    /// The shards at the end, with their weights. Another process may have turned the resize back.
    pub weights: Weights,
    /// Whether these are the weights of the goal that this mover read first.
    pub reached: bool,
}

/// Moves slots until the topology's goal is reached.
#[derive(Debug)]
pub struct Mover {
    around: Context,
    pace: Pace,
    progress: watch::Sender<Progress>,
}

impl Mover {
    /// A mover that does nothing yet.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            store,
            dial,
            clock,
            random,
            pace,
            servers_are_new,
            observer,
        } = parts;
        let around = Context {
            store,
            dial,
            clock,
            random,
            servers_are_new,
            observer,
            pause: pace.pause,
        };
        Self {
            around,
            pace,
            progress: watch::Sender::new(Progress::default()),
        }
    }

    /// The progress of the run. The receiver always has the latest.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Moves slots until the goal of the topology is reached; returns at once if it has none.
    ///
    /// Waits for a shard or a topology store that does not answer; [`progress`](Self::progress) names it and the cause.
    /// Other moves go on meanwhile.
    ///
    /// # Errors
    ///
    /// [`TopologyError`], if it is not temporary: the record cannot be read, or epochs are used up.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the record as it is: a run of any process continues from it.
    pub fn run(&self) -> BoxFuture<'_, Result<Resized, TopologyError>> {
        Box::pin(async move {
            let record = self.load().await?;
            let slots_in_flight = self.pace.slots_in_flight;
            let run = Run::new(self.around.clone(), record, slots_in_flight, &self.progress);
            run.complete().await
        })
    }

    /// Declares that each lock of `namespace` has `replicas`, for good, while processes use the ring. Takes some seconds, and
    /// the recovery periods that are under way. None of its locks is granted meanwhile; [`run`](Self::run) then opens the slots of
    /// the replicas.
    ///
    /// # Errors
    ///
    /// [`NamespaceError`]: a lock of the namespace is held, or the record does not allow it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future grants no lock of the namespace until the call is repeated.
    pub fn declare<'a>(
        &'a self,
        namespace: &'a Namespace,
        replicas: Replicas,
    ) -> BoxFuture<'a, Result<(), NamespaceError>> {
        Box::pin(self.around.declare(namespace, replicas))
    }

    /// The record in force, as soon as there is an answer.
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        loop {
            let error = match self.around.store.load().await {
                Err(error) if error.is_retryable() => error,
                loaded => return loaded,
            };
            self.progress.send_modify(|progress| {
                let reason = error.to_string();
                progress.waiting_for = Some(WaitingFor::Store { reason });
            });
            sleep(self.around.random.jitter(STORE_AGAIN)).await;
        }
    }
}
