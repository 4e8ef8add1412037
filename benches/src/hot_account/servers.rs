//! The servers that take part.

use std::collections::BTreeMap;

use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::database::{mariadb::MariaDb, postgresql::PostgreSql};

use super::{
    contenders::Reach,
    setup::{How, Log, Setup, Share},
};
use crate::{Failure, HalfShare, Place, etcd::Etcd};

/// Redis servers, by what they have written when they answer, and what they may use; and databases, which sync every
/// commit, as they do by default.
pub(crate) struct Servers {
    redis: BTreeMap<(Log, Share), Vec<RedisServer>>,
    /// Behind the servers: they are empty by the time that they go.
    _shares: Vec<HalfShare>,
    postgresql: Option<PostgreSql>,
    mariadb: Option<MariaDb>,
    etcd: Option<Etcd>,
}

impl Servers {
    /// Starts what `setups` need.
    pub(crate) async fn start(setups: &[Setup], place: Place) -> Result<Self, Failure> {
        let mut redis: BTreeMap<_, Vec<RedisServer>> = BTreeMap::new();
        let mut shares = Vec::new();
        let on_redis = setups
            .iter()
            .filter(|setup| !matches!(setup.how, How::PostgreSql | How::MariaDb | How::Etcd));
        for setup in on_redis {
            let started = redis.entry((setup.log, setup.share)).or_default();
            while started.len() < setup.shards {
                let server = builder(setup.log).spawn().await?;
                let pid = server.pid().ok_or("a server is gone")?;
                place.server(pid)?;
                if setup.share == Share::Half {
                    let half = HalfShare::new(&format!("ringfence-bench-{pid}"))?;
                    half.admit(pid)?;
                    shares.push(half);
                }
                started.push(server);
            }
        }
        let wants = |how| setups.iter().any(|setup| setup.how == how);
        let postgresql = async {
            match wants(How::PostgreSql) {
                true => Some(PostgreSql::spawn_with(&[("max_connections", "600")]).await),
                false => None,
            }
        };
        let mariadb = async {
            match wants(How::MariaDb) {
                true => Some(MariaDb::spawn_with(&[("max_connections", "600")]).await),
                false => None,
            }
        };
        let (postgresql, mariadb) = tokio::join!(postgresql, mariadb);
        let etcd = match wants(How::Etcd) {
            true => Some(Etcd::start().await?),
            false => None,
        };
        Ok(Self {
            redis,
            _shares: shares,
            postgresql,
            mariadb,
            etcd,
        })
    }

    /// Where the servers of `setup` are.
    pub(crate) fn reach(&self, setup: &Setup) -> Reach {
        let redis = self.redis.get(&(setup.log, setup.share)).into_iter();
        let database = match setup.how {
            How::PostgreSql => self.postgresql.as_ref().map(PostgreSql::address),
            How::MariaDb => self.mariadb.as_ref().map(MariaDb::address),
            How::Etcd => {
                let url = |etcd: &Etcd| format!("http://127.0.0.1:{}", etcd.port());
                self.etcd.as_ref().map(url)
            }
            _ => None,
        };
        Reach {
            redis: redis
                .flatten()
                .take(setup.shards)
                .map(RedisServer::url)
                .collect(),
            database: database.unwrap_or_default(),
        }
    }

    /// The first server of `setup`.
    pub(crate) fn redis(&self, setup: &Setup) -> &RedisServer {
        &self.redis[&(setup.log, setup.share)][0]
    }

    /// The processes of Redis.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let servers = self.redis.values().flatten();
        servers.filter_map(RedisServer::pid).collect()
    }
}

fn builder(log: Log) -> ringfence_coordinator::spawn::RedisServerBuilder {
    let builder = RedisServer::builder();
    match log {
        Log::Off => builder,
        Log::EverySecond => builder
            .set("appendonly", "yes")
            .set("appendfsync", "everysec"),
        Log::Always => builder
            .set("appendonly", "yes")
            .set("appendfsync", "always"),
    }
}
