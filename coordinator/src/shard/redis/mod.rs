//! Shards on Redis ≥ 7.0 or Valkey ≥ 8. The only module that says `redis::`.

mod address;
mod answers;
mod batch;
mod channel;
mod checkup;
mod connection;
mod counters;
mod diagnosis;
mod error;
mod functions;
mod inspect;
mod link;
mod locks;
mod migration;
mod notifications;
mod rights;
pub(crate) mod scripts;
mod self_wakes;
mod sentinels;
mod tls;
mod whole;
mod wire;

use std::time::Duration;

use async_trait::async_trait;

pub use address::{Address, AddressError, Pump};
pub(crate) use channel::Channel;
pub use checkup::{Checkup, checkup};
#[cfg(test)]
pub(crate) use connection::Calls;
pub(crate) use connection::Connection;
pub(crate) use error::classify;
pub use functions::{FunctionLibrary, Functions};
pub(crate) use scripts::Script;

pub(crate) use link::RedisLink;

use crate::{
    ids::{ClientId, Life},
    limits::{BATCH_MAX, LANES_BY_SLOT, SETTINGS_EVERY},
    name::KeyPrefix,
    shard::{
        ConnectionId, ControlLink, CounterLink, Lane, LockLane, LockLink, Shard, ShardError,
        Subscription,
    },
};

/// How one server is reached.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Where it is.
    pub address: Address,
    /// The prefix of every key. Part of the shard's identity: processes with another prefix share
    /// the server and nothing else.
    pub prefix: KeyPrefix,
    /// Names the connections, together with their lane.
    pub client: ClientId,
    /// How long a connection may take to open, with TLS and the login.
    pub connect_timeout: Duration,
    /// How long an answer may take, each of the handshake too. After it the connection is given up.
    pub response_timeout: Duration,
    /// Requests about counters in one script call, at most.
    pub counters_per_call: usize,
    /// How often a server in use is asked for the settings that counters depend on.
    pub settings_every: Duration,
}

impl RedisOptions {
    /// The server at `address`, for `client`, with default timeouts (1 s each) and prefix
    /// (`ringfence`).
    pub fn new(address: Address, client: ClientId) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            client,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            counters_per_call: BATCH_MAX,
            settings_every: SETTINGS_EVERY,
        }
    }
}

/// A shard on one Redis server.
#[derive(Clone, Debug)]
pub struct RedisShard {
    options: RedisOptions,
}

impl RedisShard {
    /// A shard on the server that `options` names. Connects to nothing yet.
    pub fn new(options: RedisOptions) -> Self {
        Self { options }
    }

    /// Opens a connection for requests about the topology.
    pub(crate) async fn connect_member(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<RedisLink, ShardError> {
        self.connect(Lane::Control, former).await
    }

    /// Listens to what `commit` publishes of a record.
    pub(crate) async fn announcements(&self) -> Result<Channel<()>, ShardError> {
        let channel = format!("{}:topology", self.options.prefix);
        Channel::open(&self.options, "watch", &channel, |_| Some(())).await
    }

    async fn connect(
        &self,
        lane: Lane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<RedisLink, ShardError> {
        let connection = Connection::open(&self.options, lane.as_str(), former).await?;
        Ok(RedisLink::new(connection, &self.options))
    }
}

#[async_trait]
impl Shard for RedisShard {
    fn work_lanes(&self) -> usize {
        LANES_BY_SLOT
    }

    async fn connect_locks(
        &self,
        lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        Ok(Box::new(self.connect(lane.into(), former).await?))
    }

    async fn connect_counters(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        Ok(Box::new(self.connect(Lane::Counters, former).await?))
    }

    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        Ok(Box::new(self.connect(Lane::Control, former).await?))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        let subscription = notifications::RedisSubscription::open(&self.options, client).await?;
        Ok(Box::new(subscription))
    }
}
