//! What takes part, and one turn of each.

use std::{hint::black_box, time::Duration};

use clap::ValueEnum;
use ringfence_client::{Builder, Client, Lock};
use ringfence_coordinator::{ids::ClientId, name::KeyPrefix, shard::ServerOptions};
use ringfence_test_support::database::{
    mariadb::MariaDb, postgresql::PostgreSql, zookeeper::Zookeeper,
};

use super::recipes::{Connection, Recipe, on_etcd, on_mariadb, on_postgresql, on_zookeeper};
use crate::{Failure, LEASE, etcd::Etcd};

/// For a crowd of 100 clients.
const SETTINGS: [(&str, &str); 1] = [("max_connections", "1200")];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    #[value(name = "postgresql")]
    PostgreSql,
    #[value(name = "mariadb")]
    MariaDb,
    Etcd,
    Zookeeper,
}

/// What the tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// Each task has a key of its own.
    OwnKeys,
    /// All want one.
    OneKey,
}

/// A way to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ringfence,
    /// The same: what the machine does to a ratio.
    RingfenceAgain,
    /// Each task gets the lock from the server.
    WithoutHandOff,
    Recipe(Recipe),
}

impl Kind {
    /// Those that take part on `engine`.
    pub(crate) fn of(engine: Engine) -> Vec<Self> {
        let ours = [Self::Ringfence, Self::RingfenceAgain, Self::WithoutHandOff];
        let recipes = Recipe::of(engine).iter().copied().map(Self::Recipe);
        ours.into_iter().chain(recipes).collect()
    }

    pub(crate) fn name(self, engine: Engine) -> &'static str {
        match (self, engine) {
            (Self::Ringfence, _) => "ringfence",
            (Self::RingfenceAgain, _) => "ringfence-again",
            (Self::WithoutHandOff, _) => "ringfence, no hand-off",
            (Self::Recipe(Recipe::RowLease), _) => "row with an end",
            (Self::Recipe(Recipe::ByName), Engine::PostgreSql) => "pg_advisory_lock",
            (Self::Recipe(Recipe::ByName), Engine::MariaDb) => "GET_LOCK",
            (Self::Recipe(Recipe::ByName), Engine::Etcd) => "concurrency.Mutex",
            (Self::Recipe(Recipe::ByName), Engine::Zookeeper) => "ephemeral znodes in a sequence",
            (Self::Recipe(Recipe::ForUpdate), _) => "SELECT … FOR UPDATE",
        }
    }
}

impl Situation {
    pub(crate) const ALL: [Self; 2] = [Self::OwnKeys, Self::OneKey];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OwnKeys => "64 keys",
            Self::OneKey => "1 key",
        }
    }
}

/// A server, and all that is connected to it.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    client: Client,
    without_hand_off: Client,
    connections: Vec<Connection>,
    url: String,
    /// Ends with this value.
    _server: Process,
}

enum Process {
    PostgreSql(#[expect(dead_code, reason = "it ends with this value")] PostgreSql),
    MariaDb(#[expect(dead_code, reason = "it ends with this value")] MariaDb),
    Etcd(#[expect(dead_code, reason = "it ends with this value")] Etcd),
    Zookeeper(#[expect(dead_code, reason = "it ends with this value")] Zookeeper),
}

impl Engine {
    pub(crate) const ALL: [Self; 4] =
        [Self::PostgreSql, Self::MariaDb, Self::Etcd, Self::Zookeeper];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PostgreSql => "PostgreSQL",
            Self::MariaDb => "MariaDB",
            Self::Etcd => "etcd",
            Self::Zookeeper => "ZooKeeper",
        }
    }

    /// Starts a server of it, and connects as many `tasks`.
    pub(crate) async fn start(self, tasks: i32) -> Result<Server, Failure> {
        let (server, url, connections) = match self {
            Self::PostgreSql => {
                let server = PostgreSql::spawn_with(&SETTINGS).await;
                let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
                let connections = on_postgresql(&server, tasks).await?;
                (Process::PostgreSql(server), url, connections)
            }
            Self::MariaDb => {
                let server = MariaDb::spawn_with(&SETTINGS).await;
                let url = format!("mysql://root@127.0.0.1:{}/test", server.port());
                let connections = on_mariadb(&server, tasks).await?;
                (Process::MariaDb(server), url, connections)
            }
            Self::Etcd => {
                let server = Etcd::start().await?;
                let url = format!("etcd://127.0.0.1:{}", server.port());
                let connections = on_etcd(&server, tasks).await?;
                (Process::Etcd(server), url, connections)
            }
            Self::Zookeeper => {
                let server = Zookeeper::spawn_on_disk().await;
                let url = server.url();
                let connections = on_zookeeper(&server, tasks).await?;
                (Process::Zookeeper(server), url, connections)
            }
        };
        let options = ServerOptions::new(url.parse()?, ClientId(0), KeyPrefix::default());
        options.prepare().await?;
        Ok(Server {
            engine: self,
            client: client_of(&url).build().await?,
            without_hand_off: client_of(&url).handoff(0, Duration::ZERO).build().await?,
            connections,
            url,
            _server: server,
        })
    }
}

fn client_of(url: &str) -> Builder {
    Client::builder().servers(url).servers_are_new(true)
}

impl Server {
    /// One more client, as another process is one.
    pub(crate) async fn client_without_hand_off(&self) -> Result<Client, Failure> {
        let builder = client_of(&self.url).connect_within(Duration::from_secs(60));
        Ok(builder.handoff(0, Duration::ZERO).build().await?)
    }

    pub(crate) fn tasks(&self, situation: Situation, kind: Kind) -> Vec<Task> {
        let tasks = (0..).zip(&self.connections);
        let task = |(number, connection): (i32, &Connection)| {
            let name = match situation {
                Situation::OwnKeys => number,
                Situation::OneKey => 0,
            };
            let client = match kind {
                Kind::Recipe(recipe) => {
                    return Task::Recipe(connection.clone(), recipe, name, number);
                }
                Kind::WithoutHandOff => &self.without_hand_off,
                Kind::Ringfence | Kind::RingfenceAgain => &self.client,
            };
            Task::Lock(client.lock(format!("{kind:?}/{name}")).lease(LEASE))
        };
        tasks.map(task).collect()
    }
}

/// Acquires and releases, again and again.
pub(crate) enum Task {
    Lock(Lock),
    /// The name, and the owner.
    Recipe(Connection, Recipe, i32, i32),
}

impl crate::Task for Task {
    async fn pair(&self) -> Result<(), Failure> {
        match self {
            Self::Lock(lock) => {
                let guard = lock.acquire().await?;
                black_box(guard.token());
                guard.release().await;
                Ok(())
            }
            Self::Recipe(connection, recipe, name, owner) => {
                connection.pair(*recipe, *name, *owner).await
            }
        }
    }
}
