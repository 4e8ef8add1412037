//! Servers of one test, and short helpers for them.

use std::{sync::Arc, time::Duration};

use redis::aio::MultiplexedConnection;
use ringfence_coordinator::{
    clock::BootClock,
    ids::{ClientId, Life},
    random::Random,
    shard::{ServerOptions, redis::RedisOptions},
    spawn::RedisServer,
    topology::{
        Topology, TopologyError,
        server::{Founding, Joined, Observer, Step, connect},
    },
};
use tokio::task::JoinSet;

/// How many versions a recovery skips.
pub(crate) const LOST_VERSIONS: u64 = 1 << 20;
pub(crate) const POINTER: &str = "ringfence:pointer";
pub(crate) const RECORD: &str = "ringfence:topology";

/// Empty servers.
pub(crate) struct Servers(pub(crate) Vec<RedisServer>);

impl Servers {
    /// `count` servers that save nothing.
    pub(crate) async fn spawn(count: usize) -> Self {
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(RedisServer::spawn().await.unwrap());
        }
        Self(servers)
    }

    /// `count` servers that save every write.
    pub(crate) async fn spawn_saving(count: usize) -> Self {
        let mut servers = Vec::new();
        for _ in 0..count {
            let builder = RedisServer::builder().set("appendonly", "yes");
            servers.push(builder.set("appendfsync", "always").spawn().await.unwrap());
        }
        Self(servers)
    }

    /// How each is reached, in order.
    pub(crate) fn seeds(&self) -> Vec<RedisOptions> {
        self.0.iter().map(|server| options(&server.url())).collect()
    }

    /// The addresses as records spell them.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.seeds()
            .iter()
            .map(|seed| seed.address.to_string())
            .collect()
    }

    /// The place of the server at `address`.
    pub(crate) fn place(&self, address: &str) -> usize {
        self.addresses()
            .iter()
            .position(|one| one == address)
            .unwrap()
    }

    /// The places, in the order in which a founding claims them.
    pub(crate) async fn by_run_id(&self) -> Vec<usize> {
        let mut by_run_id = Vec::new();
        for place in 0..self.0.len() {
            by_run_id.push((self.life(place).await, place));
        }
        by_run_id.sort();
        by_run_id.into_iter().map(|(_, place)| place).collect()
    }

    /// The places of all but one.
    pub(crate) fn others(&self, place: usize) -> Vec<usize> {
        (0..self.0.len()).filter(|other| *other != place).collect()
    }

    /// A connection that asks nothing of anybody.
    pub(crate) async fn raw(&self, place: usize) -> MultiplexedConnection {
        let client = redis::Client::open(self.0[place].url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    /// The text at `key`.
    pub(crate) async fn get(&self, place: usize, key: &str) -> Option<String> {
        redis::Cmd::get(key)
            .query_async(&mut self.raw(place).await)
            .await
            .unwrap()
    }

    /// The keys that match `pattern`.
    pub(crate) async fn keys(&self, place: usize, pattern: &str) -> Vec<String> {
        let mut keys = redis::cmd("KEYS");
        keys.arg(pattern);
        keys.query_async(&mut self.raw(place).await).await.unwrap()
    }

    pub(crate) async fn set(&self, place: usize, key: &str, value: &str) {
        redis::Cmd::set(key, value)
            .exec_async(&mut self.raw(place).await)
            .await
            .unwrap();
    }

    /// The key `part` of the server's present life.
    pub(crate) async fn key_of_life(&self, place: usize, part: &str) -> String {
        let sections = &["server", "replication"];
        let mut raw = self.raw(place).await;
        let info: redis::InfoDict = redis::cmd("INFO")
            .arg(sections)
            .query_async(&mut raw)
            .await
            .unwrap();
        let text = |name: &str| info.get::<String>(name).unwrap();
        format!(
            "ringfence:life:{}:{}:{part}",
            text("run_id"),
            text("master_replid")
        )
    }

    /// Ids of the topologies that the servers' pointers name.
    pub(crate) async fn pointers(&self) -> Vec<Option<String>> {
        let mut pointers = Vec::new();
        for place in 0..self.0.len() {
            let pointer = self.get(place, POINTER).await;
            pointers.push(pointer.map(|pointer| pointer.split(' ').next().unwrap().to_owned()));
        }
        pointers
    }

    /// The life that the server at `place` is in.
    pub(crate) async fn life(&self, place: usize) -> Life {
        let key = self.key_of_life(place, "").await;
        let life = key.trim_start_matches("ringfence:life:");
        Life::new(life.trim_end_matches(':'))
    }

    /// The fence of the server at `place`, in its present life.
    pub(crate) async fn fence(&self, place: usize) -> Option<String> {
        self.get(place, &self.key_of_life(place, "fence").await)
            .await
    }

    /// The id of the shard on the server at `place`.
    pub(crate) fn shard(&self, topology: &Topology, place: usize) -> String {
        let address = &self.addresses()[place];
        let mut shards = topology.shards.iter();
        let (name, _) = shards.find(|(_, entry)| entry.address == *address).unwrap();
        name.0.to_string()
    }

    /// Leaves `topology` as the copy of the server at `place`.
    pub(crate) async fn copy_to(&self, place: usize, topology: &Topology) {
        let (n, version) = topology.version();
        let key = self.key_of_life(place, "copy").await;
        let text = format!("{n} {version} {}", topology.encode());
        self.set(place, &key, &text).await;
    }

    /// Founds a topology on all of them; answers its home's place too.
    pub(crate) async fn founded(self) -> (Self, Joined, usize) {
        let joined = self.found().await;
        let home = self.place(&joined.topology.home.address);
        (self, joined, home)
    }

    /// Founds a topology on all of them.
    pub(crate) async fn found(&self) -> Joined {
        let joined = join(self.seeds()).await.unwrap();
        assert!(joined.founded_now);
        joined
    }

    /// Founds a topology on all of them, as a process does that ends as soon as `last` is true of a
    /// step.
    pub(crate) async fn found_until(&self, last: impl Fn(&Step) -> bool + Send + Sync + 'static) {
        Self::end_at(self.seeds(), last).await;
    }

    /// As [`found_until`](Self::found_until), on `seeds`.
    pub(crate) async fn end_at(
        seeds: Vec<RedisOptions>,
        last: impl Fn(&Step) -> bool + Send + Sync + 'static,
    ) {
        let observer = Observer::new(move |step| assert!(!last(step), "ends here"));
        let mut process = JoinSet::new();
        process.spawn(async move {
            join_with(
                seeds,
                Founding {
                    observer,
                    ..founding()
                },
            )
            .await
        });
        let ended = process.join_next().await.unwrap();
        assert!(ended.is_err(), "{ended:?}");
    }
}

pub(crate) fn options(url: &str) -> RedisOptions {
    RedisOptions::new(url.parse().unwrap(), ClientId(Random::from_os().id()))
}

/// Impatient about what cannot be.
pub(crate) fn founding() -> Founding {
    let (within, watch_every) = (Duration::from_secs(20), Duration::from_millis(20));
    Founding {
        within,
        watch_every,
        ..Founding::default()
    }
}

/// As `founding`, where an obstacle is expected to stay.
pub(crate) fn hopeless() -> Founding {
    Founding {
        within: Duration::from_millis(300),
        ..founding()
    }
}

pub(crate) async fn join_with(
    seeds: Vec<impl Into<ServerOptions>>,
    founding: Founding,
) -> Result<Joined, TopologyError> {
    let random = Arc::new(Random::from_os());
    let engine = ClientId(random.id());
    connect(seeds, founding, Arc::new(BootClock), random, engine).await
}

pub(crate) async fn join(seeds: Vec<RedisOptions>) -> Result<Joined, TopologyError> {
    join_with(seeds, founding()).await
}

/// The members' addresses, by shard id.
pub(crate) fn members(topology: &Topology) -> Vec<String> {
    topology
        .shards
        .values()
        .map(|entry| entry.address.clone())
        .collect()
}

/// A record that may follow `topology`.
pub(crate) fn successor(topology: &Topology) -> Topology {
    Topology {
        version: topology.version + 1,
        ..topology.clone()
    }
}

/// The message of an error that is expected to be `RecoverNeeded`.
pub(crate) fn recover_needed<T>(result: Result<T, TopologyError>) -> String {
    match result {
        Err(error @ TopologyError::RecoverNeeded { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("a record was used"),
    }
}
