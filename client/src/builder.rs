//! Where the shards are, and how to use them.

use std::{collections::BTreeMap, fmt, io, ops::Range, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    engine::{CoordinatorError, Coordinators, Engine, Handoff, Parts, Sharing},
    ids::ClientId,
    limits::BATCH_MAX,
    name::{Label, NameError, Namespace},
    random::Random,
    shard::{Effect, ServerAddressError},
    topology::{
        Constants, DeclareError, Namespaces, Removal, TopologyError, server::ServerTopology,
    },
};
use ringfence_ring::Replicas;
use ringfence_segment_lock::Failure;

use crate::{Client, RedisUrls, embedded, embedded::Embedded, latch::Latches, servers};

/// Configures a client: where the shards are, and how to use them. Made by [`Client::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing is started until it is built"]
pub struct Builder {
    pub(crate) place: Option<Place>,
    pub(crate) label: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) latency: Range<Duration>,
    pub(crate) prefix: String,
    pub(crate) constants: Constants,
    pub(crate) servers_are_new: bool,
    pub(crate) topology_at: Option<String>,
    pub(crate) existing_topology: bool,
    pub(crate) members_only: bool,
    pub(crate) connect_within: Option<Duration>,
    pub(crate) sharing: Sharing,
    pub(crate) replicas: BTreeMap<String, u32>,
    pub(crate) counters_per_call: usize,
}

/// Where the shards are.
#[derive(Clone)]
pub(crate) enum Place {
    Embedded(usize),
    Servers(Vec<String>),
    #[cfg(feature = "service")]
    Service(crate::Coordinators),
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(shards) => write!(formatter, "Embedded({shards})"),
            // A URL may hold a password.
            Self::Servers(urls) => write!(formatter, "Servers({} seeds)", urls.len()),
            #[cfg(feature = "service")]
            Self::Service(coordinators) => write!(formatter, "{coordinators:?}"),
        }
    }
}

/// The reason why a client could not be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither `embedded` nor `servers` was called, or without a shard or a URL.
    #[error("no shards: call embedded(n) with n ≥ 1, or servers([..]) with at least one URL")]
    NoShards,
    /// A seed on shards that other processes share: two processes with one seed would share their
    /// nonces, and so each other's locks.
    #[error(
        "seed is for embedded shards: on servers, two processes with one seed would share locks"
    )]
    SeedOnServers,
    /// A URL is invalid.
    #[error(transparent)]
    Address(#[from] ServerAddressError),
    /// A namespace or the prefix is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A namespace with replicas is invalid.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// The topology exists, and its locks have other replicas.
    #[error(
        "namespace {namespace} has {declared} replicas in this topology, for good; asked for {replicas}"
    )]
    Replicas {
        /// The namespace.
        namespace: Namespace,
        /// Its replicas.
        declared: Replicas,
        /// The replicas asked for.
        replicas: Replicas,
    },
    /// The topology cannot be founded or joined.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No coordinator can be used.
    #[error(transparent)]
    Coordinators(CoordinatorError),
    /// The thread of a [blocking client](crate::blocking::Client) cannot be started.
    #[error("the client's thread cannot be started: {0}")]
    Thread(Arc<io::Error>),
}

impl BuildError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        self.failure().is_some_and(Failure::is_retryable)
    }

    /// Whether a topology may have been founded all the same.
    pub fn effect(&self) -> Effect {
        self.failure().map_or(Effect::None, Failure::effect)
    }

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.failure().and_then(Failure::retry_after)
    }

    /// The error with its consequences; none if the configuration was refused at once.
    fn failure(&self) -> Option<&dyn Failure> {
        match self {
            Self::Topology(error) => Some(error),
            Self::Coordinators(error) => Some(error),
            Self::NoShards
            | Self::SeedOnServers
            | Self::Address(_)
            | Self::Name(_)
            | Self::Declare(_)
            | Self::Replicas { .. }
            | Self::Thread(_) => None,
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            place: None,
            label: None,
            seed: None,
            clock: Arc::new(BootClock),
            latency: Duration::ZERO..Duration::ZERO,
            prefix: "ringfence".into(),
            constants: Constants::default(),
            servers_are_new: false,
            topology_at: None,
            existing_topology: false,
            members_only: false,
            connect_within: None,
            sharing: Sharing::default(),
            replicas: BTreeMap::new(),
            counters_per_call: BATCH_MAX,
        }
    }
}

impl Builder {
    /// Uses `shards` shards in this process. They need no server, and do not exclude other
    /// processes.
    pub fn embedded(mut self, shards: usize) -> Self {
        self.place = Some(Place::Embedded(shards));
        self
    }

    /// Uses servers of Redis, as [`servers`](Self::servers) does.
    pub fn redis<Form>(self, urls: impl RedisUrls<Form>) -> Self {
        self.servers(urls)
    }

    /// Uses servers: one URL, or a list of URLs, of Redis (an [`Address`](ringfence_coordinator::shard::redis::Address):
    /// `redis://`, or `redis+sentinel://` for a primary that Sentinels watch); with the feature `postgres`, of PostgreSQL
    /// (`postgres://user:password@host/database`); with the feature `mysql`, of MariaDB
    /// (`mysql://user:password@host/database`); with the feature `etcd`, clusters of etcd
    /// (`etcd://host,host,host`); with the feature `zookeeper`, ensembles of ZooKeeper (`zookeeper://host,host,host/path`). All kinds may be in one topology; with one that is not Redis, it has
    /// locks and no counters. A server that no URL names is reached with the credentials of the first one of its kind.
    ///
    /// They are seeds: the topology found there decides on the members. If
    /// there is none, and every seed answers, a topology of exactly these servers is founded.
    /// Processes that name different servers can found different topologies, and then do not
    /// exclude each other. So found it once, with `ringfence ring init`, and set
    /// [`existing_topology`](Self::existing_topology).
    pub fn servers<Form>(mut self, urls: impl RedisUrls<Form>) -> Self {
        self.place = Some(Place::Servers(urls.into_urls()));
        self
    }

    /// Uses coordinators of the service instead of shards: for a process that must not reach the servers. Locks of every
    /// kind, multi-locks and elections work as on shards; a lock passes between the tasks of this process by way of the
    /// coordinator. Counters and latches are those at the shards, too. Segmented locks and the ring need a
    /// client that reaches the shards. If the runtime ends before [`Client::close`](crate::Client::close), locks end with their leases.
    #[cfg(feature = "service")]
    pub fn coordinators(mut self, coordinators: impl Into<crate::Coordinators>) -> Self {
        self.place = Some(Place::Service(coordinators.into()));
        self
    }

    /// The name of this process, shown to processes that wait for its locks. Default: `host/pid`.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Takes all randomness from `seed`, for simulation. Embedded shards only.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Takes all time from `clock`, for simulation.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The latency of each request to an embedded shard, and of each answer.
    pub fn latency(mut self, range: Range<Duration>) -> Self {
        self.latency = range;
        self
    }

    /// The prefix of every key on the servers, instead of `ringfence`: 1 to 64 printable ASCII
    /// characters without space, `{` and `}`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The longest lease of a topology that is founded here; default: 30 s. It is also the time in
    /// which a shard that came back grants no new lock.
    pub fn max_lease(mut self, length: Duration) -> Self {
        self.constants.max_lease_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Makes the recovery period longer by `length`, in a topology that is founded here; default:
    /// 0. It is for servers that fail over while some clients can still reach the former primary,
    /// which goes on granting until it misses its replica. So configure it to stop then
    /// (`min-replicas-to-write 1`, `min-replicas-max-lag 1`), and set 3 s here: Redis counts the
    /// lag in whole seconds, and checks once per second.
    pub fn replica_lag(mut self, length: Duration) -> Self {
        self.constants.replica_lag_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// How a shard that is gone for good is removed, in a topology that is founded here. Default:
    /// [`Removal::Supervised`].
    pub fn removal(mut self, removal: Removal) -> Self {
        self.constants.removal = removal;
        self
    }

    /// The view lease, in a topology that is founded here with [`Removal::Leased`]: after `length`
    /// without an answer from the topology's store, a process sends nothing more and loses its
    /// locks. Default: a sixth of the longest lease.
    pub fn view_lease(mut self, length: Duration) -> Self {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.constants.view_lease_ms = Some(length_ms);
        self
    }

    /// States that the servers were started for this and have never held a lock: if a topology is
    /// founded, they need no recovery period. If this is wrong, two holders are possible.
    pub fn servers_are_new(mut self, new: bool) -> Self {
        self.servers_are_new = new;
        self
    }

    /// Stores the record of a topology that is founded here on the server at `url`, instead of on a
    /// shard: a server of any kind, or, with feature `etcd`, a cluster of etcd, `etcd://host,host,host`, or, with
    /// feature `zookeeper`, an ensemble of ZooKeeper.
    ///
    /// The record of a topology that exists stays where it is. Name its server all the same if a login is needed there:
    /// the shards tell where it is, without credentials.
    pub fn topology_at(mut self, url: &str) -> Self {
        self.topology_at = Some(url.into());
        self
    }

    /// Uses only a topology that exists already, and founds none. If there is none, the build fails
    /// with [`TopologyError::Absent`](crate::TopologyError::Absent).
    pub fn existing_topology(mut self, existing: bool) -> Self {
        self.existing_topology = existing;
        self
    }

    /// Requires that every seed that answers is, or was, a member of the topology. If one is not,
    /// the build fails with [`TopologyError::Seeds`](crate::TopologyError::Seeds), which names it;
    /// without this setting it is a warning.
    pub fn members_only(mut self, only: bool) -> Self {
        self.members_only = only;
        self
    }

    /// How long to ask servers for their topology if they do not answer; default: 10 s. An attempt
    /// under way is finished, so it takes about 2 s more if servers are silent.
    pub fn connect_within(mut self, length: Duration) -> Self {
        self.connect_within = Some(length);
        self
    }

    /// How often, and for how long, a lock passes between tasks of this process once another
    /// process waits for it; default: 64 times and 20 ms, whichever ends first. While no other
    /// process waits there is no limit. With `max` 0 a lock is never handed on: every task asks the
    /// shard. The same holds for writers of a read-write lock; readers have it together until another process waits.
    pub fn handoff(mut self, max: u32, length: Duration) -> Self {
        self.sharing.handoff = Handoff { max, length };
        self
    }

    /// Keeps a lock of `namespace` for `length` after its last guard in this process is gone, and
    /// grants it again at once. The lock goes back when another process wants it. Default: off.
    ///
    /// Trade-off: after a crash, an idle lock stays held until its lease expires.
    pub fn linger(mut self, namespace: &str, length: Duration) -> Self {
        self.sharing.linger.insert(namespace.into(), length);
        self
    }

    /// Each lock of `namespace` has this many replicas, 1, 3 or 5, on distinct shards: a majority of them is the lock, so
    /// it survives the loss of one shard, or of two. For a topology that is founded here; the build fails with
    /// [`BuildError::Replicas`] if one exists whose locks have other replicas.
    pub fn replicas(mut self, namespace: &str, replicas: u32) -> Self {
        self.replicas.insert(namespace.into(), replicas);
        self
    }

    /// The limit of counter requests in one script call on Redis; default: 128. With 1, each
    /// request has its own call, which is useful only for comparison.
    pub fn counters_per_call(mut self, requests: usize) -> Self {
        self.counters_per_call = requests;
        self
    }

    /// Finds or founds the topology, connects to its shards, and starts a client.
    ///
    /// A shard that cannot be reached is no error here: requests for its keys report it until it
    /// answers.
    ///
    /// # Errors
    ///
    /// [`BuildError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a topology half founded: the next client finishes it.
    pub fn build(self) -> BoxFuture<'static, Result<Client, BuildError>> {
        Box::pin(async move {
            for namespace in self.sharing.linger.keys() {
                Namespace::new(namespace)?;
            }
            let namespaces = self.namespaces()?;
            let random = Arc::new(self.seed.map_or_else(Random::from_os, Random::seeded));
            let client = match &self.place {
                None | Some(Place::Embedded(0)) => return Err(BuildError::NoShards),
                Some(Place::Servers(urls)) if urls.is_empty() => return Err(BuildError::NoShards),
                Some(Place::Servers(_)) if self.seed.is_some() => {
                    return Err(BuildError::SeedOnServers);
                }
                Some(Place::Embedded(shards)) => {
                    embedded::build(&self, *shards, random, None).await?
                }
                Some(Place::Servers(urls)) => servers::build(&self, urls, random).await?,
                #[cfg(feature = "service")]
                Some(Place::Service(coordinators)) => {
                    let coordinators = coordinators.clone();
                    return crate::service::build(self, coordinators, random).await;
                }
            };
            let there = &client.topology().namespaces;
            for (namespace, replicas) in namespaces.iter() {
                let declared = there.replicas(namespace);
                if declared != replicas {
                    return Err(BuildError::Replicas {
                        namespace: namespace.clone(),
                        declared,
                        replicas,
                    });
                }
            }
            Ok(client)
        })
    }

    /// The namespaces with replicas.
    pub(crate) fn namespaces(&self) -> Result<Namespaces, BuildError> {
        let mut namespaces = Namespaces::default();
        for (name, &replicas) in &self.replicas {
            let name = Namespace::new(name)?;
            let replicas = Replicas::new(replicas).map_err(|error| DeclareError::Ring {
                name: name.clone(),
                error,
            })?;
            namespaces.declare(name, replicas)?;
        }
        Ok(namespaces)
    }

    /// Starts the parts of the engine that do not depend on where the shards are.
    pub(crate) async fn start(
        &self,
        found: Found,
        client: ClientId,
        random: Arc<Random>,
    ) -> Client {
        let Found {
            store,
            topology,
            dial,
            servers_are_new,
            grounds,
            warnings,
            coordinators,
        } = found;
        let label = self.label.clone().unwrap_or_else(host_and_pid);
        let engine = Engine::start(Parts {
            clock: self.clock.clone(),
            random,
            client,
            label: Label::new(&label),
            store,
            topology,
            dial,
            sharing: self.sharing.clone(),
            servers_are_new,
            shared: matches!(grounds, Grounds::Servers(_)),
            coordinators,
        });
        Client {
            engine: engine.await,
            grounds,
            warnings,
            latches: Latches::default(),
            #[cfg(feature = "service")]
            reach: None,
        }
    }
}

/// The parts that depend on where the shards are.
pub(crate) struct Found {
    pub(crate) store: Arc<dyn ringfence_coordinator::topology::TopologyStore>,
    pub(crate) topology: Arc<ringfence_coordinator::topology::Topology>,
    pub(crate) dial: Arc<dyn ringfence_coordinator::topology::Dial>,
    pub(crate) servers_are_new: bool,
    pub(crate) grounds: Grounds,
    pub(crate) warnings: Vec<String>,
    /// They grant the locks, instead of the shards.
    pub(crate) coordinators: Option<Arc<dyn Coordinators>>,
}

/// Where shards are created or found.
#[derive(Clone, Debug)]
pub(crate) enum Grounds {
    Embedded(Arc<Embedded>),
    Servers(Arc<ServerTopology>),
}

fn host_and_pid() -> String {
    let host = nix::unistd::gethostname()
        .ok()
        .and_then(|host| host.into_string().ok());
    format!(
        "{}/{}",
        host.unwrap_or_else(|| "unknown".into()),
        std::process::id()
    )
}
