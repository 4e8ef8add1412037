//! A shard that things are done to, on a server of any kind.

use ringfence_coordinator::{ids::ClientId, name::KeyPrefix, shard::ServerOptions};
use ringfence_test_support::{
    Proxy,
    database::{etcd::Etcd, mariadb::MariaDb, postgresql::PostgreSql, zookeeper::Zookeeper},
};
use tokio::time::sleep;

use super::{
    member::{Member, befall},
    plan::Step,
};
use crate::history::Fault;

/// A kind of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Redis,
    PostgreSql,
    MariaDb,
    Etcd,
    Zookeeper,
}

impl Kind {
    /// Whether `fault` can happen to such a server.
    pub(super) fn suffers(self, fault: Fault) -> bool {
        let of_databases = matches!(
            fault,
            Fault::RestartAof | Fault::StopServer | Fault::Cut | Fault::Delay | Fault::BlackHole
        );
        self == Self::Redis || of_databases
    }

    /// `fault`, or what it is for such a server: one that restarts has what it had.
    pub(super) fn like(self, fault: Fault) -> Fault {
        match fault {
            Fault::RestartEmpty | Fault::RestartAofCut if self != Self::Redis => Fault::RestartAof,
            other => other,
        }
    }
}

/// A shard.
#[derive(Debug)]
pub(super) enum Shard {
    Redis(Box<Member>),
    Database(Database),
}

/// A database, and a proxy in front of it.
#[derive(Debug)]
pub(super) struct Database {
    server: Server,
    proxy: Proxy,
}

enum Server {
    PostgreSql(PostgreSql),
    MariaDb(MariaDb),
    /// Of one node.
    Etcd(Etcd),
    /// Of one server.
    Zookeeper(Zookeeper),
}

impl Shard {
    /// Starts a server of that kind.
    pub(super) async fn start(kind: Kind, seed: u64) -> Self {
        let server = match kind {
            Kind::Redis => return Self::Redis(Box::new(Member::start(seed).await)),
            // Files that outlast a process are enough: no machine fails.
            Kind::PostgreSql => {
                Server::PostgreSql(PostgreSql::spawn_with(&[("fsync", "off")]).await)
            }
            Kind::MariaDb => {
                // A server that is away for a while keeps connections that nobody waits for any more.
                let settings = [
                    ("innodb_flush_method", "nosync"),
                    ("sync_frm", "0"),
                    ("max_connections", "1000"),
                ];
                Server::MariaDb(MariaDb::spawn_with(&settings).await)
            }
            Kind::Etcd => Server::Etcd(Etcd::spawn(1).await),
            Kind::Zookeeper => Server::Zookeeper(Zookeeper::spawn(1).await),
        };
        let options = ServerOptions::new(
            server.url(server.port()).parse().expect("it is ours"),
            ClientId(0),
            KeyPrefix::default(),
        );
        options.prepare().await.expect("tables");
        let proxy = Proxy::raw(server.port(), seed).await;
        Self::Database(Database { server, proxy })
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Redis(_) => Kind::Redis,
            Self::Database(database) => match database.server {
                Server::PostgreSql(_) => Kind::PostgreSql,
                Server::MariaDb(_) => Kind::MariaDb,
                Server::Etcd(_) => Kind::Etcd,
                Server::Zookeeper(_) => Kind::Zookeeper,
            },
        }
    }

    /// Where clients find it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Redis(member) => member.url(),
            Self::Database(Database { server, proxy }) => server.url(proxy.port()),
        }
    }

    /// What is between it and its clients.
    pub(super) fn proxy(&self) -> &Proxy {
        match self {
            Self::Redis(member) => member.proxy(),
            Self::Database(database) => &database.proxy,
        }
    }

    /// Kills its server for good.
    pub(super) fn fail(&mut self) {
        match self {
            Self::Redis(member) => member.fail(),
            Self::Database(Database { server, proxy }) => {
                proxy.refuse(true);
                server.kill();
            }
        }
    }

    /// Does what `step` says, and undoes it.
    pub(super) async fn suffer(&mut self, step: &Step) {
        let Database { server, proxy } = match self {
            Self::Redis(member) => return member.suffer(step).await,
            Self::Database(database) => database,
        };
        match step.fault {
            Fault::RestartAof => {
                server.kill();
                sleep(step.lasts).await;
                server.restart().await;
            }
            Fault::StopServer => {
                server.stop();
                sleep(step.lasts).await;
                server.cont();
            }
            _ => befall(proxy, step).await,
        }
    }
}

impl Server {
    fn url(&self, port: u16) -> String {
        match self {
            Self::PostgreSql(_) => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            Self::MariaDb(_) => format!("mysql://root@127.0.0.1:{port}/test"),
            Self::Etcd(_) => format!("etcd://127.0.0.1:{port}"),
            Self::Zookeeper(_) => format!("zookeeper://127.0.0.1:{port}"),
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::PostgreSql(server) => server.port(),
            Self::MariaDb(server) => server.port(),
            Self::Etcd(server) => server.port(),
            Self::Zookeeper(server) => server.port(),
        }
    }

    fn kill(&mut self) {
        match self {
            Self::PostgreSql(server) => server.kill(),
            Self::MariaDb(server) => server.kill(),
            Self::Etcd(server) => server.kill(0),
            Self::Zookeeper(server) => server.kill(0),
        }
    }

    async fn restart(&mut self) {
        match self {
            Self::PostgreSql(server) => server.restart().await,
            Self::MariaDb(server) => server.restart().await,
            Self::Etcd(server) => server.restart(&[0]).await,
            Self::Zookeeper(server) => server.restart(&[0]).await,
        }
    }

    fn stop(&self) {
        match self {
            Self::PostgreSql(server) => server.stop(),
            Self::MariaDb(server) => server.stop(),
            Self::Etcd(server) => server.stop(0),
            Self::Zookeeper(server) => server.stop(0),
        }
    }

    fn cont(&self) {
        match self {
            Self::PostgreSql(server) => server.cont(),
            Self::MariaDb(server) => server.cont(),
            Self::Etcd(server) => server.cont(0),
            Self::Zookeeper(server) => server.cont(0),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.url(self.port()))
    }
}
