//! Requests locks from shards, renews them while they are wanted, and reports their true state.
//!
//! | file | content |
//! |---|---|
//! | `acquire.rs` | one acquisition |
//! | `local/` | the holder and the waiters of a key in this process; sends nothing itself |
//! | `ring/` | requests, renewals, and releases at the shards; routing |
//! | `resume.rs` | goes on with locks of holders outside of the process |
//! | `quorum/` | locks with several replicas |
//! | `remote/` | locks that coordinators grant |
//! | `inspect.rs` | holders and waiters, and releases by force |
//! | `counters/` | the storage of counters |
//! | `segmented.rs` | sub-locks of one name |
//! | `reshape.rs` | changing the ring |

mod acquire;
mod counters;
mod error;
mod inspect;
mod local;
mod quorum;
mod remote;
mod reshape;
mod resume;
mod ring;
mod segmented;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::BoxFuture;
use ringfence_ring::ShardId;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    clock::{Clock, Instant},
    driver::Context,
    ids::ClientId,
    metrics::Reading,
    name::{Label, LockKey, NameError, Namespace},
    random::Random,
    shard::ShardError,
    topology::{Dial, Topology, TopologyStore},
    view::ViewLease,
};
pub use acquire::{Acquire, Wait};
pub use counters::{AccountNames, AccountNamesPage, CounterFault};
pub use error::{AcquireError, Danger, LockLost, ReleaseAnswer};
pub use inspect::{Locks, LocksPage, ReplicaInspection};
use local::{Authority, Handle, LocalQueues};
pub use local::{
    DetachedLease, Guard, Handoff, LeaseRef, LiveReplicas, Owner, Sharing, WaitObserver, Waiting,
};
use quorum::Shards;
pub use remote::{Ask, Connection, CoordinatorError, Coordinators, Told};
use remote::{Remote, Service};
pub use ring::ShardStatus;
use ring::{Releases, Requests, Ring, Routing, monitor};
pub use segmented::{SubLockTerms, SubLocks};

/// The parts that an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub random: Arc<Random>,
    /// This process's id. New for every engine: two engines with one id could share a nonce.
    pub client: ClientId,
    /// The name of this process shown to others.
    pub label: Label,
    /// The store of the topology.
    pub store: Arc<dyn TopologyStore>,
    /// The present topology.
    pub topology: Arc<Topology>,
    /// Reaches its shards.
    pub dial: Arc<dyn Dial>,
    /// How this process shares held locks among its own tasks.
    pub sharing: Sharing,
    /// Whether the servers are declared new, so that no earlier lock can be held: then a founding
    /// epoch needs no grace.
    pub servers_are_new: bool,
    /// Whether other processes can reach the shards: then dropping the last handle, or the end of
    /// the runtime, sends the remaining releases, and waits at most 250 ms for that.
    pub shared: bool,
    /// Grant all locks, instead of the shards: then the topology is one of this process alone, for the order of keys and
    /// for the numbers.
    pub coordinators: Option<Arc<dyn Coordinators>>,
}

/// Gives access to locks. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// The numbers of an engine.
#[derive(Clone, Debug)]
pub struct EngineMetrics(Weak<Inner>);

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Engine")
            .field(&self.0.label)
            .finish()
    }
}

struct Inner {
    around: Context,
    label: Label,
    queues: Arc<Handle>,
    routing: Arc<Routing>,
    requests: Arc<Requests>,
    store: Arc<dyn TopologyStore>,
    servers_are_new: bool,
    coordinators: Option<Arc<dyn Coordinators>>,
    /// Of a task: gone with the runtime of all tasks, or once it is stopped.
    running: Weak<()>,
}

impl Inner {
    /// Refuses what would wait for tasks that are gone.
    fn has_runtime(&self) -> Result<(), ShardError> {
        let is_there = self.running.strong_count() > 0 || self.around.stop.is_cancelled();
        match is_there {
            true => Ok(()),
            false => Err(ShardError::Unusable {
                reason: "the runtime that the client was built in has ended: build the client in a runtime that lasts as long"
                    .into(),
            }),
        }
    }
}

impl Engine {
    /// Starts an engine: connects to every shard of the topology, and arms shards that are not
    /// armed.
    ///
    /// A shard that cannot be reached is no error here: requests for its keys report it until it
    /// answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops everything it has started.
    pub fn start(parts: Parts) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let Parts {
                clock,
                random,
                client,
                label,
                store,
                topology,
                dial,
                sharing,
                servers_are_new,
                shared,
                coordinators,
            } = parts;
            let view = ViewLease::new(&topology.constants);
            let around = Context {
                clock,
                random,
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
                view: Arc::new(view),
            };
            let stop_if_dropped = around.stop.clone().drop_guard();
            let (runs, stop) = (Arc::new(()), around.stop.clone());
            let running = Arc::downgrade(&runs);
            around.tasks.spawn(async move {
                stop.cancelled().await;
                drop(runs);
            });
            let releases = Releases::start(&around, shared);
            let queues = LocalQueues::start(client, sharing, &around);
            let requests = Requests::new(client, queues.clone(), releases, &around);
            let routing = Routing::new(topology, dial, client, requests.clone(), &around);
            let routing = Arc::new(routing);
            requests.start(&routing);
            let authority: Arc<dyn Authority> = match &coordinators {
                None => Arc::new(Shards(Arc::new(Ring {
                    requests: requests.clone(),
                    routing: routing.clone(),
                }))),
                Some(coordinators) => {
                    let remote = Remote::new(coordinators.clone(), requests.clone());
                    Arc::new(Service(remote))
                }
            };
            let queues = Handle::new(queues, authority);
            let inner = Arc::new(Inner {
                label: label.clone(),
                queues,
                routing,
                requests,
                store,
                servers_are_new,
                coordinators,
                running,
                around,
            });
            let stewards = (&inner.routing, &inner.store, label);
            monitor::start(stewards, &inner.around, servers_are_new).await;
            stop_if_dropped.disarm();
            Self(inner)
        })
    }

    /// The clock of all deadlines.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.around.clock
    }

    /// The source of its randomness.
    pub fn random(&self) -> &Arc<Random> {
        &self.0.around.random
    }

    /// The topology in use.
    pub fn topology(&self) -> Arc<Topology> {
        self.0.routing.topology()
    }

    /// The shard that owns `key` now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`].
    pub fn shard_of(&self, namespace: &Namespace, key: &[u8]) -> Result<ShardId, AcquireError> {
        let key = self.key(namespace, key)?;
        Ok(self.0.routing.route(&key).renewer.driver.id().clone())
    }

    /// The state of every shard, requested now.
    pub async fn shards(&self) -> BTreeMap<ShardId, ShardStatus> {
        monitor::look(&self.0.routing).await
    }

    /// The number of locks this engine holds now.
    pub fn held(&self) -> usize {
        self.0.requests.held()
    }

    /// Reads its numbers. Does not keep the engine alive.
    pub fn metrics(&self) -> EngineMetrics {
        EngineMetrics(Arc::downgrade(&self.0))
    }

    /// Stops: sends the releases of dropped guards, for at most `grace`, then ends every task. Held
    /// guards are not released: they end with their leases, or, if the shards are
    /// [shared](Parts::shared), are released when they and the last handle are dropped.
    ///
    /// Returns how many releases could not be sent; their locks expire.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the engine running; call again.
    pub async fn close(&self, grace: Duration) -> usize {
        self.0.queues.close();
        let unsent = self.0.queues.flush(grace).await;
        self.0.around.stop.cancel();
        self.0.around.tasks.close();
        self.0.around.tasks.wait().await;
        unsent
    }

    /// `key` of `namespace`, with its slot.
    ///
    /// # Errors
    ///
    /// [`NameError::KeyEmpty`], [`NameError::KeyTooLong`].
    pub fn key(&self, namespace: &Namespace, key: &[u8]) -> Result<LockKey, NameError> {
        LockKey::new(namespace, key, self.0.routing.slots())
    }
}

impl EngineMetrics {
    /// The numbers now; none once the engine is gone.
    pub fn read(&self) -> Option<Reading> {
        let engine = self.0.upgrade()?;
        let view = engine.routing.view();
        let renewers = view.renewers.iter();
        let moving = view.topology.migrations.iter();
        Some(Reading {
            shards: renewers.map(|renewer| renewer.driver.reading()).collect(),
            topology_version: view.topology.version,
            slots_moving: moving.map(|migration| migration.slots.len()).sum(),
        })
    }
}

impl Inner {
    fn now(&self) -> Instant {
        self.around.clock.now()
    }
}
