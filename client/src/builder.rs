//! Where the shards are, and how they are used.

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::{BootClock, Clock},
    engine::{Engine, Handoff, Parts, Sharing},
    ids::ClientId,
    limits::BATCH_MAX,
    name::{Label, NameError, Namespace},
    random::Random,
    shard::redis::AddressError,
    topology::{Constants, Removal, TopologyError, redis::RedisTopology},
};

use crate::{Client, embedded, embedded::Embedded, redis};

/// Says where the shards are, and how they are used. Made by [`Client::builder`].
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
    pub(crate) counters_per_call: usize,
}

/// Where the shards are.
#[derive(Clone)]
pub(crate) enum Place {
    Embedded(usize),
    Redis(Vec<String>),
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(shards) => write!(formatter, "Embedded({shards})"),
            // A URL may hold a password.
            Self::Redis(urls) => write!(formatter, "Redis({} seeds)", urls.len()),
        }
    }
}

/// Why a client could not be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither `embedded` nor `redis` was called, or with nothing.
    #[error("no shards: call embedded(n) with n ≥ 1, or redis([..]) with at least one URL")]
    NoShards,
    /// A seed on shards that other processes share: two with one seed would share their nonces,
    /// and so each other's locks.
    #[error(
        "seed is for embedded shards: on servers, two processes with one seed would share locks"
    )]
    SeedOnServers,
    /// A URL is not one.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A namespace, or the prefix, is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The topology cannot be founded or joined.
    #[error(transparent)]
    Topology(#[from] TopologyError),
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
            counters_per_call: BATCH_MAX,
        }
    }
}

impl Builder {
    /// On `shards` shards in this process: they exclude nobody outside it, and need no server.
    pub fn embedded(mut self, shards: usize) -> Self {
        self.place = Some(Place::Embedded(shards));
        self
    }

    /// On Redis servers. `urls` are seeds: who is a member is decided by the topology found there.
    /// Where none is found, and every one of them answers, one is founded of exactly these: processes that name
    /// different servers can found different topologies, which exclude nobody from each other's locks. Found it
    /// once, with `ringfence ring init`, and say [`existing_topology`](Self::existing_topology).
    pub fn redis(mut self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.place = Some(Place::Redis(urls.into_iter().map(Into::into).collect()));
        self
    }

    /// How this process is shown to others that wait for its locks: `host/pid` if not said.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.into());
        self
    }

    /// All randomness from `seed`, for simulation. Embedded shards only.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// All time from `clock`, for simulation.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Each request to an embedded shard, and each answer, takes this long.
    pub fn latency(mut self, range: Range<Duration>) -> Self {
        self.latency = range;
        self
    }

    /// Put before every key on the servers, instead of `ringfence`: 1 to 64 printable ASCII characters without space, `{` and `}`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The longest lease, if a topology is founded: 30 s if not said. It is also how long a shard
    /// that came back grants nothing new.
    pub fn max_lease(mut self, length: Duration) -> Self {
        self.constants.max_lease_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// If a topology is founded, grace is longer by `length`: 0 if not said. For servers that fail
    /// over while some client may still reach the former primary: it goes on granting until it
    /// misses its replica, so have it stop then (`min-replicas-to-write 1`, `min-replicas-max-lag
    /// 1`), and say 3 s here: Redis counts the lag in whole seconds, and looks once a second.
    pub fn replica_lag(mut self, length: Duration) -> Self {
        self.constants.replica_lag_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// If a topology is founded: how a shard that is gone for good is removed. [`Removal::Supervised`] if not
    /// said.
    pub fn removal(mut self, removal: Removal) -> Self {
        self.constants.removal = removal;
        self
    }

    /// If a topology is founded with [`Removal::Leased`]: a process that the topology's store has not
    /// answered for `length` sends nothing any more, and loses its locks. A sixth of the longest lease if
    /// not said.
    pub fn view_lease(mut self, length: Duration) -> Self {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.constants.view_lease_ms = Some(length_ms);
        self
    }

    /// Says that the servers were started for this and have never held a lock: if a topology is
    /// founded, they need no grace. Wrong, it can make two holders.
    pub fn servers_are_new(mut self, new: bool) -> Self {
        self.servers_are_new = new;
        self
    }

    /// If a topology is founded, its record is kept on the server at `url` instead of on a shard.
    pub fn topology_at(mut self, url: &str) -> Self {
        self.topology_at = Some(url.into());
        self
    }

    /// Only for a topology that is there already: none is founded. Where there is none, the build
    /// fails with [`TopologyError::Absent`](crate::TopologyError::Absent).
    pub fn existing_topology(mut self, existing: bool) -> Self {
        self.existing_topology = existing;
        self
    }

    /// Every seed that answers must be a member of the topology, or must have been one. Where one is not, the build
    /// fails with [`TopologyError::Seeds`](crate::TopologyError::Seeds), which names it; without this it is a
    /// warning.
    pub fn members_only(mut self, only: bool) -> Self {
        self.members_only = only;
        self
    }

    /// How long to go on asking servers that do not answer for their topology: 10 s if not said. An
    /// attempt under way is finished, so it takes about 2 s more where servers are silent.
    pub fn connect_within(mut self, length: Duration) -> Self {
        self.connect_within = Some(length);
        self
    }

    /// How often, and for how long, a lock goes on from task to task of this process once another process
    /// waits for it: 64 times and 20 ms if not said, whichever is over first. While none waits there is no
    /// bound. With `max` 0 it never does: every task asks the shard.
    pub fn handoff(mut self, max: u32, length: Duration) -> Self {
        self.sharing.handoff = Handoff { max, length };
        self
    }

    /// Keeps a lock of `namespace` for `length` after its last guard in this process is gone, and grants it
    /// again at once; it goes back when another process wants it. Off if not said.
    ///
    /// If this process dies meanwhile, the lock is free when its lease has run out, though nobody held it.
    pub fn linger(mut self, namespace: &str, length: Duration) -> Self {
        self.sharing.linger.insert(namespace.into(), length);
        self
    }

    /// How many requests about counters one script call on Redis has, at most: 128 if not said. With 1 each has a
    /// call of its own, which is good for nothing but a comparison.
    pub fn counters_per_call(mut self, requests: usize) -> Self {
        self.counters_per_call = requests;
        self
    }

    /// Finds or founds the topology, connects to its shards, and starts a client.
    ///
    /// A shard that cannot be reached is no error here: its own keys answer so, until it can.
    ///
    /// # Errors
    ///
    /// [`BuildError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a topology half founded: whoever comes next finishes it.
    pub async fn build(self) -> Result<Client, BuildError> {
        for namespace in self.sharing.linger.keys() {
            Namespace::new(namespace)?;
        }
        let random = Arc::new(self.seed.map_or_else(Random::from_os, Random::seeded));
        match &self.place {
            None | Some(Place::Embedded(0)) => Err(BuildError::NoShards),
            Some(Place::Redis(urls)) if urls.is_empty() => Err(BuildError::NoShards),
            Some(Place::Redis(_)) if self.seed.is_some() => Err(BuildError::SeedOnServers),
            Some(Place::Embedded(shards)) => embedded::build(&self, *shards, random).await,
            Some(Place::Redis(urls)) => redis::build(&self, urls, random).await,
        }
    }

    /// The engine's parts that do not depend on where the shards are.
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
            shared: matches!(grounds, Grounds::Redis(_)),
        });
        Client {
            engine: engine.await,
            grounds,
            warnings,
        }
    }
}

/// What depends on where the shards are.
pub(crate) struct Found {
    pub(crate) store: Arc<dyn ringfence_coordinator::topology::TopologyStore>,
    pub(crate) topology: Arc<ringfence_coordinator::topology::Topology>,
    pub(crate) dial: Arc<dyn ringfence_coordinator::engine::Dial>,
    pub(crate) servers_are_new: bool,
    pub(crate) grounds: Grounds,
    pub(crate) warnings: Vec<String>,
}

/// Where shards are made, or found.
#[derive(Clone, Debug)]
pub(crate) enum Grounds {
    Embedded(Arc<Embedded>),
    Redis(Arc<RedisTopology>),
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
