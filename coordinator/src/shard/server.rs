//! Servers of every kind: their addresses, and how they are reached.

use std::{fmt, str::FromStr, sync::Arc};

#[cfg(feature = "mysql")]
use super::mysql::{self, MysqlAddress, MysqlAddressError, MysqlOptions, mysql_shard};
#[cfg(feature = "postgres")]
use super::postgres::{
    self, PostgresAddress, PostgresAddressError, PostgresOptions, postgres_shard,
};
use super::{
    Shard, ShardError,
    docs::DocsShard,
    member::MemberShard,
    redis::{Address, AddressError, RedisOptions, RedisShard},
};
#[cfg(feature = "etcd")]
use crate::etcd::{self, EtcdAddress, EtcdAddressError, EtcdOptions, etcd_home, etcd_shard};
#[cfg(feature = "zookeeper")]
use crate::zookeeper::{
    self, ZookeeperAddress, ZookeeperAddressError, ZookeeperOptions, zookeeper_home,
    zookeeper_shard,
};
use crate::{ids::ClientId, name::KeyPrefix, random::Random};

/// The address of a server: of Redis, or, with the features `postgres`, `mysql`, `etcd` and `zookeeper`, of PostgreSQL,
/// MariaDB, etcd and ZooKeeper. Displayed and compared without credentials.
#[derive(Clone)]
pub enum ServerAddress {
    /// `redis://`, `rediss://`, `redis+sentinel://` or `unix://`.
    Redis(Address),
    /// `postgres://`.
    #[cfg(feature = "postgres")]
    Postgres(PostgresAddress),
    /// `mysql://`.
    #[cfg(feature = "mysql")]
    Mysql(MysqlAddress),
    /// `etcd://` or `etcds://`.
    #[cfg(feature = "etcd")]
    Etcd(EtcdAddress),
    /// `zookeeper://`.
    #[cfg(feature = "zookeeper")]
    Zookeeper(ZookeeperAddress),
}

/// The reason why an address was refused. It never contains the address, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerAddressError {
    /// It begins like none.
    #[error(
        "an address begins with redis://, rediss://, redis+sentinel://, postgres://, mysql://, etcd://, etcds:// or zookeeper://"
    )]
    Unknown,
    /// It begins like one of Redis.
    #[error(transparent)]
    Redis(#[from] AddressError),
    /// It begins like one of PostgreSQL.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] PostgresAddressError),
    /// It begins like one of MariaDB.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Mysql(#[from] MysqlAddressError),
    /// It begins like one of etcd.
    #[cfg(feature = "etcd")]
    #[error(transparent)]
    Etcd(#[from] EtcdAddressError),
    /// It begins like one of ZooKeeper.
    #[cfg(feature = "zookeeper")]
    #[error(transparent)]
    Zookeeper(#[from] ZookeeperAddressError),
    /// This build does not know servers of that kind.
    #[error("this build has no {kind}: it needs the feature `{feature}`")]
    NoFeature {
        /// The kind.
        kind: &'static str,
        /// The feature of the library.
        feature: &'static str,
    },
}

/// How one server is reached.
#[derive(Clone, Debug)]
pub enum ServerOptions {
    /// A server of Redis.
    Redis(RedisOptions),
    /// A server of PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(PostgresOptions),
    /// A server of MariaDB.
    #[cfg(feature = "mysql")]
    Mysql(MysqlOptions),
    /// A cluster of etcd.
    #[cfg(feature = "etcd")]
    Etcd(EtcdOptions),
    /// An ensemble of ZooKeeper.
    #[cfg(feature = "zookeeper")]
    Zookeeper(ZookeeperOptions),
}

/// A kind of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Redis,
    Postgres,
    Mysql,
    Etcd,
    Zookeeper,
}

impl Kind {
    /// The kind that `url` is meant for.
    pub(super) fn of(url: &str) -> Self {
        match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Self::Postgres,
            Some(("mysql" | "mariadb", _)) => Self::Mysql,
            Some(("etcd" | "etcds", _)) => Self::Etcd,
            Some(("zookeeper", _)) => Self::Zookeeper,
            _ => Self::Redis,
        }
    }
}

/// Whether `name` can be a part of an address that is shown: without a character that begins another part, which may be
/// the password.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn is_plain(name: &str, more: &str) -> bool {
    let plain = |one: char| one.is_alphanumeric() || "_-.$".contains(one) || more.contains(one);
    name.chars().all(plain)
}

/// Whether the server at `address` keeps counters; servers of documents keep locks alone.
pub(crate) fn keeps_counters(address: &str) -> bool {
    Kind::of(address) == Kind::Redis
}

impl ServerAddress {
    /// The address, without credentials.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Redis(address) => address.as_str(),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => address.as_str(),
            #[cfg(feature = "mysql")]
            Self::Mysql(address) => address.as_str(),
            #[cfg(feature = "etcd")]
            Self::Etcd(address) => address.as_str(),
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(address) => address.as_str(),
        }
    }
}

impl FromStr for ServerAddress {
    type Err = ServerAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        match Kind::of(url) {
            Kind::Redis => match url.parse() {
                Ok(address) => Ok(Self::Redis(address)),
                Err(error) if url.starts_with("redis") => Err(ServerAddressError::Redis(error)),
                Err(_) => Err(ServerAddressError::Unknown),
            },
            #[cfg(feature = "postgres")]
            Kind::Postgres => Ok(Self::Postgres(url.parse()?)),
            #[cfg(feature = "mysql")]
            Kind::Mysql => Ok(Self::Mysql(url.parse()?)),
            #[cfg(feature = "etcd")]
            Kind::Etcd => Ok(Self::Etcd(url.parse()?)),
            #[cfg(feature = "zookeeper")]
            Kind::Zookeeper => Ok(Self::Zookeeper(url.parse()?)),
            #[cfg(not(feature = "postgres"))]
            Kind::Postgres => Err(ServerAddressError::NoFeature {
                kind: "PostgreSQL",
                feature: "postgres",
            }),
            #[cfg(not(feature = "mysql"))]
            Kind::Mysql => Err(ServerAddressError::NoFeature {
                kind: "MariaDB",
                feature: "mysql",
            }),
            #[cfg(not(feature = "etcd"))]
            Kind::Etcd => Err(ServerAddressError::NoFeature {
                kind: "etcd",
                feature: "etcd",
            }),
            #[cfg(not(feature = "zookeeper"))]
            Kind::Zookeeper => Err(ServerAddressError::NoFeature {
                kind: "ZooKeeper",
                feature: "zookeeper",
            }),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl PartialEq for ServerAddress {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ServerAddress {}

impl ServerOptions {
    /// The server at `address`, for `client`, with default timeouts (1 s each), and its data under `prefix`.
    pub fn new(address: ServerAddress, client: ClientId, prefix: KeyPrefix) -> Self {
        match address {
            ServerAddress::Redis(address) => Self::Redis(RedisOptions {
                prefix,
                ..RedisOptions::new(address, client)
            }),
            #[cfg(feature = "postgres")]
            ServerAddress::Postgres(address) => Self::Postgres(PostgresOptions {
                prefix,
                ..PostgresOptions::new(address)
            }),
            #[cfg(feature = "mysql")]
            ServerAddress::Mysql(address) => Self::Mysql(MysqlOptions {
                prefix,
                ..MysqlOptions::new(address)
            }),
            #[cfg(feature = "etcd")]
            ServerAddress::Etcd(address) => Self::Etcd(EtcdOptions {
                prefix,
                ..EtcdOptions::new(address)
            }),
            #[cfg(feature = "zookeeper")]
            ServerAddress::Zookeeper(address) => Self::Zookeeper(ZookeeperOptions {
                prefix,
                ..ZookeeperOptions::new(address)
            }),
        }
    }

    /// Requests about counters in one call, at most. Servers that keep no counters have no use for it.
    pub fn counters_per_call(mut self, requests: usize) -> Self {
        match &mut self {
            Self::Redis(options) => options.counters_per_call = requests,
            #[cfg(any(
                feature = "etcd",
                feature = "mysql",
                feature = "postgres",
                feature = "zookeeper"
            ))]
            _ => {}
        }
        self
    }

    /// Its address, without credentials.
    pub fn address(&self) -> &str {
        match self {
            Self::Redis(options) => options.address.as_str(),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => options.address.as_str(),
            #[cfg(feature = "mysql")]
            Self::Mysql(options) => options.address.as_str(),
            #[cfg(feature = "etcd")]
            Self::Etcd(options) => options.address.as_str(),
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(options) => options.address.as_str(),
        }
    }

    /// What its data is stored under.
    pub fn prefix(&self) -> &KeyPrefix {
        match self {
            Self::Redis(options) => &options.prefix,
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => &options.prefix,
            #[cfg(feature = "mysql")]
            Self::Mysql(options) => &options.prefix,
            #[cfg(feature = "etcd")]
            Self::Etcd(options) => &options.prefix,
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(options) => &options.prefix,
        }
    }

    /// The server at `address`, reached like this one. `None`: it is of another kind.
    pub(crate) fn at(&self, address: &ServerAddress) -> Option<Self> {
        match (self, address.clone()) {
            (Self::Redis(options), ServerAddress::Redis(address)) => {
                let options = options.clone();
                Some(Self::Redis(RedisOptions { address, ..options }))
            }
            #[cfg(feature = "postgres")]
            (Self::Postgres(options), ServerAddress::Postgres(address)) => {
                let options = options.clone();
                Some(Self::Postgres(PostgresOptions { address, ..options }))
            }
            #[cfg(feature = "mysql")]
            (Self::Mysql(options), ServerAddress::Mysql(address)) => {
                let options = options.clone();
                Some(Self::Mysql(MysqlOptions { address, ..options }))
            }
            #[cfg(feature = "etcd")]
            (Self::Etcd(options), ServerAddress::Etcd(address)) => {
                let options = options.clone();
                Some(Self::Etcd(EtcdOptions { address, ..options }))
            }
            #[cfg(feature = "zookeeper")]
            (Self::Zookeeper(options), ServerAddress::Zookeeper(address)) => {
                let options = options.clone();
                Some(Self::Zookeeper(ZookeeperOptions { address, ..options }))
            }
            #[cfg(any(
                feature = "etcd",
                feature = "mysql",
                feature = "postgres",
                feature = "zookeeper"
            ))]
            _ => None,
        }
    }

    /// The server at `shown`, reached like this one, with its credentials. `None`: it is of another kind.
    ///
    /// # Errors
    ///
    /// [`ServerAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Option<Self>, ServerAddressError> {
        let address = match (self, shown.parse()?) {
            (Self::Redis(options), ServerAddress::Redis(_)) => {
                ServerAddress::Redis(options.address.sibling(shown)?)
            }
            #[cfg(feature = "postgres")]
            (Self::Postgres(options), ServerAddress::Postgres(_)) => {
                ServerAddress::Postgres(options.address.sibling(shown)?)
            }
            #[cfg(feature = "mysql")]
            (Self::Mysql(options), ServerAddress::Mysql(_)) => {
                ServerAddress::Mysql(options.address.sibling(shown)?)
            }
            #[cfg(feature = "etcd")]
            (Self::Etcd(options), ServerAddress::Etcd(_)) => {
                ServerAddress::Etcd(options.address.sibling(shown)?)
            }
            #[cfg(feature = "zookeeper")]
            (Self::Zookeeper(options), ServerAddress::Zookeeper(_)) => {
                ServerAddress::Zookeeper(options.address.sibling(shown)?)
            }
            #[cfg(any(
                feature = "etcd",
                feature = "mysql",
                feature = "postgres",
                feature = "zookeeper"
            ))]
            _ => return Ok(None),
        };
        Ok(self.at(&address))
    }

    /// Makes what a server needs to be a shard, unless it is there: on PostgreSQL logged tables, which needs the right to
    /// make a schema; on MariaDB tables and procedures; on others nothing. A cluster of etcd is checked: its version, and
    /// whether it has space. On ZooKeeper znodes are made.
    ///
    /// # Errors
    ///
    /// The server does not answer, or the user may not.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves all of it, or nothing.
    pub async fn prepare(&self) -> Result<(), ShardError> {
        match self {
            Self::Redis(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => postgres::prepare(options).await,
            #[cfg(feature = "mysql")]
            Self::Mysql(options) => mysql::prepare(options).await,
            #[cfg(feature = "etcd")]
            Self::Etcd(options) => etcd::check(options).await,
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(options) => zookeeper::check(options).await,
        }
    }

    /// The shard on that server. Connects to nothing yet. `random` is this process's own.
    pub fn shard(&self, random: &Arc<Random>) -> Arc<dyn Shard> {
        match (self, self.docs(random)) {
            (Self::Redis(options), _) => Arc::new(RedisShard::new(options.clone())),
            #[cfg(feature = "etcd")]
            (Self::Etcd(options), _) => Arc::new(etcd_shard(options.clone(), random.clone())),
            #[cfg(feature = "zookeeper")]
            (Self::Zookeeper(options), _) => {
                Arc::new(zookeeper_shard(options.clone(), random.clone()))
            }
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            (_, docs) => Arc::new(docs.expect("all others store documents")),
        }
    }

    /// The server, for requests about the topology.
    pub(crate) fn member(&self, random: &Arc<Random>) -> MemberShard {
        match (self, self.docs(random)) {
            (_, Some(docs)) => MemberShard::Docs(Arc::new(docs)),
            (Self::Redis(options), None) => {
                MemberShard::Redis(Box::new(RedisShard::new(options.clone())))
            }
            #[cfg(any(
                feature = "etcd",
                feature = "mysql",
                feature = "postgres",
                feature = "zookeeper"
            ))]
            (_, None) => unreachable!("all others store documents"),
        }
    }

    /// The shard, if its server stores documents, for requests about the topology.
    fn docs(&self, _random: &Arc<Random>) -> Option<DocsShard> {
        match self {
            Self::Redis(_) => None,
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => Some(postgres_shard(options.clone(), _random.clone())),
            #[cfg(feature = "mysql")]
            Self::Mysql(options) => Some(mysql_shard(options.clone(), _random.clone())),
            #[cfg(feature = "etcd")]
            Self::Etcd(options) => Some(etcd_home(options.clone(), _random.clone())),
            #[cfg(feature = "zookeeper")]
            Self::Zookeeper(options) => Some(zookeeper_home(options.clone(), _random.clone())),
        }
    }
}

impl From<Address> for ServerAddress {
    fn from(address: Address) -> Self {
        Self::Redis(address)
    }
}

impl From<RedisOptions> for ServerOptions {
    fn from(options: RedisOptions) -> Self {
        Self::Redis(options)
    }
}

#[cfg(feature = "postgres")]
impl From<PostgresOptions> for ServerOptions {
    fn from(options: PostgresOptions) -> Self {
        Self::Postgres(options)
    }
}

#[cfg(feature = "mysql")]
impl From<MysqlOptions> for ServerOptions {
    fn from(options: MysqlOptions) -> Self {
        Self::Mysql(options)
    }
}

#[cfg(feature = "etcd")]
impl From<EtcdOptions> for ServerOptions {
    fn from(options: EtcdOptions) -> Self {
        Self::Etcd(options)
    }
}

#[cfg(feature = "zookeeper")]
impl From<ZookeeperOptions> for ServerOptions {
    fn from(options: ZookeeperOptions) -> Self {
        Self::Zookeeper(options)
    }
}
