//! Asks shards for locks, keeps them while they are wanted, and tells the truth about them.
//!
//! | file | what |
//! |---|---|
//! | `acquire.rs` | one acquisition |
//! | `line/` | who of this process has a key, and who waits; the request at the shard |
//! | `hold.rs` | what is known of one record at a shard: tokens, deadline, state |
//! | `home.rs` | the shard that a record is at |
//! | `flow.rs` | what is on its way for it |
//! | `grant.rs` | one holder's time with it |
//! | `guard.rs` | a holder's side of that |
//! | `release.rs` | giving back, now or in the background |
//! | `last_releases.rs` | giving back when no task can any more |
//! | `keeper.rs` | renewals, a task a shard |
//! | `moving.rs` | a holder goes along with its slot |
//! | `wheel.rs` | when to look at which hold |
//! | `inspect.rs` | who has what, and taking it away by force |
//! | `waiting.rs` | why an acquisition waits, for who wants to know |
//! | `owner.rs` | re-entry |
//! | `counters/` | where counters are stored |
//! | `segmented.rs` | sub-locks of one name |
//! | `reshape.rs` | changing the ring |
//! | `routing.rs` | key → shard |
//! | `map.rs` | the slots a shard has at rest |
//! | `checks.rs` | whether servers are set up as they have to be, looked at again and again |
//! | `steward.rs` | arms and settles shards, follows the topology |
//! | `told.rs` | what is asked of shards about grants, and what they say, as debug events |

mod acquire;
mod checks;
mod counters;
mod error;
mod flow;
mod grant;
mod guard;
mod hold;
mod home;
mod inspect;
mod keeper;
mod last_releases;
mod line;
mod map;
mod moving;
mod owner;
mod release;
mod reshape;
mod routing;
mod segmented;
mod steward;
mod told;
mod waiting;
mod wheel;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ringfence_ring::ShardId;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    clock::{Clock, Instant},
    driver::Surroundings,
    ids::ClientId,
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{Shard, ShardError},
    topology::{ShardEntry, Topology, TopologyStore},
    view::ViewLease,
};
pub use acquire::{Acquire, Wait};
pub use counters::CounterFault;
pub use error::{AcquireError, Danger, LockLost, ReleaseAnswer};
pub use guard::Guard;
pub use inspect::{Locks, LocksPage};
use line::Lines;
pub use line::{Handoff, Sharing};
pub use owner::Owner;
use release::Releases;
use routing::Routing;
pub use segmented::{SubLockTerms, SubLocks};
pub use waiting::{WaitObserver, Waiting};

/// Makes the shard that a topology's entry names.
pub trait Dial: fmt::Debug + Send + Sync + 'static {
    /// The shard. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// The entry's address is not one this engine can reach.
    fn dial(&self, id: &ShardId, entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError>;
}

/// What an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub random: Arc<Random>,
    /// This process. New for every engine: two that share one could share a nonce.
    pub client: ClientId,
    /// How this process is shown to others.
    pub label: Label,
    /// Where the topology is kept.
    pub store: Arc<dyn TopologyStore>,
    /// The topology as it is.
    pub topology: Arc<Topology>,
    /// Reaches its shards.
    pub dial: Arc<dyn Dial>,
    /// How what it holds is shared among its own tasks.
    pub sharing: Sharing,
    /// Whether whoever started the servers says that they are new, so that no lock of before can
    /// be held: a founding epoch then needs no grace.
    pub servers_are_new: bool,
    /// Whether other processes can reach the shards: then dropping the last handle, or the end of the
    /// runtime, sends what is still to be released, and waits 250 ms for that at most.
    pub shared: bool,
}

/// Hands out locks. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    around: Surroundings,
    label: Label,
    lines: Arc<Lines>,
    routing: Arc<Routing>,
    releases: Arc<Releases>,
    store: Arc<dyn TopologyStore>,
    servers_are_new: bool,
}

/// A shard, as the engine sees it.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// The part of the slots it has, of 1.
    pub share: f64,
    /// How long it grants nothing yet.
    pub grace_left: Duration,
    /// Why it cannot be reached, if so.
    pub error: Option<ShardError>,
}

impl Engine {
    /// Starts an engine: connects to every shard of the topology, and arms those that are not.
    ///
    /// A shard that cannot be reached is no error here: its own keys answer so, until it can.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what was started.
    pub async fn start(parts: Parts) -> Self {
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
        } = parts;
        let view = ViewLease::new(topology.constants.view_lease());
        let around = Surroundings {
            clock,
            random,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            view: Arc::new(view),
        };
        let stop_if_dropped = around.stop.clone().drop_guard();
        let releases = Releases::start(&around, shared);
        let lines = Lines::new(client, sharing, releases.clone(), &around);
        let routing = Routing::new(
            topology,
            dial,
            client,
            (releases.clone(), lines.clone()),
            &around,
        );
        let routing = Arc::new(routing);
        lines.start(&routing);
        let inner = Arc::new(Inner {
            label,
            lines,
            routing,
            releases,
            store,
            servers_are_new,
            around,
        });
        steward::start(&inner.routing, &inner.store, &inner.around, servers_are_new).await;
        stop_if_dropped.disarm();
        Self(inner)
    }

    /// The time that deadlines are counted on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.around.clock
    }

    /// Where its randomness comes from.
    pub fn random(&self) -> &Arc<Random> {
        &self.0.around.random
    }

    /// The topology in use.
    pub fn topology(&self) -> Arc<Topology> {
        self.0.routing.topology()
    }

    /// Which shard `key` is on now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`].
    pub fn shard_of(&self, namespace: &Namespace, key: &[u8]) -> Result<ShardId, AcquireError> {
        let key = self.key(namespace, key)?;
        Ok(self.0.routing.route(&key).keeper.driver.id().clone())
    }

    /// Every shard's state, asked for now.
    pub async fn shards(&self) -> BTreeMap<ShardId, ShardStatus> {
        steward::look(&self.0.routing).await
    }

    /// Locks held by this engine now.
    pub fn held(&self) -> usize {
        self.0.lines.held()
    }

    /// Stops: sends the releases of dropped guards, for at most `grace`, then ends every task.
    /// Guards still held are not released: they end with their leases, or, if the shards are
    /// [shared](Parts::shared), are released when they and the last handle are dropped.
    ///
    /// Answers how many releases could not be sent; their locks expire.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the engine running; call again.
    pub async fn close(&self, grace: Duration) -> usize {
        self.0.lines.close();
        let unsent = self.0.releases.flush(grace).await;
        self.0.around.stop.cancel();
        self.0.around.tasks.close();
        self.0.around.tasks.wait().await;
        unsent
    }

    fn key(&self, namespace: &Namespace, key: &[u8]) -> Result<LockKey, AcquireError> {
        Ok(LockKey::new(namespace, key, self.0.routing.slots())?)
    }
}

impl Inner {
    fn now(&self) -> Instant {
        self.around.clock.now()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lines.close();
        self.around.stop.cancel();
        self.releases.take_over();
    }
}
