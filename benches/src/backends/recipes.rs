//! Locks by the means of the server alone. One connection per task.

use std::{sync::Arc, time::Duration};

use mysql_async::prelude::Queryable as _;
use ringfence_test_support::database::{
    mariadb::{self, MariaDb},
    postgresql::{self, PostgreSql},
    zookeeper::Zookeeper,
};
use tokio::{sync::Mutex, time::sleep};
use tonic::transport::Channel;
use zookeeper_client::{Acls, CreateMode, LockPrefix};

use super::contenders::Engine;
use crate::{
    Failure,
    etcd::{self, Etcd},
};

/// How long a task waits before it asks for a row again that another one has.
const AGAIN: Duration = Duration::from_millis(5);

/// A way to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// A row with an owner, and an end by the server's clock.
    RowLease,
    /// `pg_advisory_lock`, `GET_LOCK`; `concurrency.Mutex`, which etcd runs itself in its lock service; on ZooKeeper ephemeral znodes with numbers, each of which waits for the one before.
    ByName,
    ForUpdate,
}

impl Recipe {
    /// Those that `engine` has.
    pub(crate) fn of(engine: Engine) -> &'static [Self] {
        match engine {
            Engine::PostgreSql | Engine::MariaDb => {
                &[Self::RowLease, Self::ByName, Self::ForUpdate]
            }
            Engine::Etcd | Engine::Zookeeper => &[Self::ByName],
        }
    }
}

/// A connection of one task.
#[derive(Clone)]
pub(crate) enum Connection {
    PostgreSql(Arc<OnPostgreSql>),
    MariaDb(Arc<Mutex<mysql_async::Conn>>),
    /// One for all tasks; and the task's own lease, a session.
    Etcd(Channel, i64),
    Zookeeper(zookeeper_client::Client),
}

pub(crate) struct OnPostgreSql {
    connection: postgresql::Connection,
    take: tokio_postgres::Statement,
    give_back: tokio_postgres::Statement,
    lock: tokio_postgres::Statement,
    unlock: tokio_postgres::Statement,
    for_update: tokio_postgres::Statement,
}

/// The server's code for a statement that was undone because of a deadlock.
const DEADLOCK: u16 = 1213;

const ROWS: [&str; 2] = [
    "CREATE TABLE leases (name INT PRIMARY KEY, owner INT NOT NULL, until TIMESTAMP(3) NOT NULL)",
    "CREATE TABLE wanted (name INT PRIMARY KEY)",
];

pub(crate) async fn on_postgresql(
    server: &PostgreSql,
    count: i32,
) -> Result<Vec<Connection>, Failure> {
    let first = server.connect().await;
    for statement in ROWS {
        first.batch_execute(statement).await?;
    }
    let rows = format!(
        "INSERT INTO wanted SELECT generate_series(0, {})",
        count - 1
    );
    first.batch_execute(&rows).await?;
    let address = format!("postgresql://postgres@127.0.0.1:{}/postgres", server.port());
    let mut connections = Vec::new();
    for _ in 0..count {
        let connection = postgresql::connect(&address).await?;
        let of = async |statement: &str| connection.prepare(statement).await;
        let on = OnPostgreSql {
            take: of(
                "INSERT INTO leases VALUES ($1, $2, localtimestamp + interval '30 s')
                 ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
                 WHERE leases.until < localtimestamp",
            )
            .await?,
            give_back: of("DELETE FROM leases WHERE name = $1 AND owner = $2").await?,
            lock: of("SELECT pg_advisory_lock($1::int)").await?,
            unlock: of("SELECT pg_advisory_unlock($1::int)").await?,
            for_update: of("SELECT name FROM wanted WHERE name = $1 FOR UPDATE").await?,
            connection,
        };
        connections.push(Connection::PostgreSql(Arc::new(on)));
    }
    Ok(connections)
}

pub(crate) async fn on_mariadb(server: &MariaDb, count: i32) -> Result<Vec<Connection>, Failure> {
    let mut first = server.connect().await;
    for statement in ROWS {
        first.query_drop(statement).await?;
    }
    for name in 0..count {
        first
            .exec_drop("INSERT INTO wanted VALUES (?)", (name,))
            .await?;
    }
    let port = server.port();
    let address = format!("mysql://root@127.0.0.1:{port}/test?prefer_socket=false");
    let mut connections = Vec::new();
    for _ in 0..count {
        let connection = mariadb::connect(&address).await?;
        connections.push(Connection::MariaDb(Arc::new(Mutex::new(connection))));
    }
    Ok(connections)
}

pub(crate) async fn on_etcd(server: &Etcd, count: i32) -> Result<Vec<Connection>, Failure> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let lease = etcd::lease(&server.channel).await?;
        connections.push(Connection::Etcd(server.channel.clone(), lease));
    }
    Ok(connections)
}

pub(crate) async fn on_zookeeper(
    server: &Zookeeper,
    count: i32,
) -> Result<Vec<Connection>, Failure> {
    let hosts = server.hosts();
    let mut connections = Vec::new();
    for _ in 0..count {
        let client = zookeeper_client::Client::connect(&hosts).await?;
        connections.push(Connection::Zookeeper(client));
    }
    if let Some(Connection::Zookeeper(client)) = connections.first() {
        let kept = CreateMode::Persistent.with_acls(Acls::anyone_all());
        for name in 0..count {
            client.mkdir(&format!("/recipe/{name}"), &kept).await?;
        }
    }
    Ok(connections)
}

/// As Curator does it: an ephemeral znode with a number, and a watch on the one before.
async fn pair_on_zookeeper(client: &zookeeper_client::Client, name: i32) -> Result<(), Failure> {
    let dir = format!("/recipe/{name}");
    let lock = LockPrefix::new_curator(&dir, "lock-")?;
    let lock = client.lock(lock, b"", Acls::anyone_all()).await?;
    client.delete(lock.lock_path(), None).await?;
    // It would delete the znode once more.
    std::mem::forget(lock);
    Ok(())
}

impl Connection {
    /// Takes the lock `name`, and gives it back.
    pub(crate) async fn pair(&self, recipe: Recipe, name: i32, owner: i32) -> Result<(), Failure> {
        match self {
            Self::PostgreSql(on) => on.pair(recipe, name, owner).await,
            Self::MariaDb(connection) => {
                pair_on_mariadb(&mut *connection.lock().await, recipe, name, owner).await
            }
            Self::Etcd(channel, lease) => {
                etcd::pair(channel, name.to_string().as_bytes(), *lease).await
            }
            Self::Zookeeper(client) => pair_on_zookeeper(client, name).await,
        }
    }
}

impl OnPostgreSql {
    async fn pair(&self, recipe: Recipe, name: i32, owner: i32) -> Result<(), Failure> {
        let client = &self.connection;
        match recipe {
            Recipe::RowLease => {
                while client.execute(&self.take, &[&name, &owner]).await? == 0 {
                    sleep(AGAIN).await;
                }
                client.execute(&self.give_back, &[&name, &owner]).await?;
            }
            Recipe::ByName => {
                client.query_one(&self.lock, &[&name]).await?;
                client.query_one(&self.unlock, &[&name]).await?;
            }
            Recipe::ForUpdate => {
                client.batch_execute("BEGIN").await?;
                client.query_one(&self.for_update, &[&name]).await?;
                client.batch_execute("COMMIT").await?;
            }
        }
        Ok(())
    }
}

async fn pair_on_mariadb(
    connection: &mut mysql_async::Conn,
    recipe: Recipe,
    name: i32,
    owner: i32,
) -> Result<(), Failure> {
    match recipe {
        Recipe::RowLease => {
            let take = "INSERT INTO leases VALUES (?, ?, utc_timestamp(3) + INTERVAL 30 SECOND)
                 ON DUPLICATE KEY UPDATE
                 owner = IF(until < utc_timestamp(3), VALUES(owner), owner),
                 until = IF(owner = VALUES(owner), VALUES(until), until)";
            while changed(connection, take, name, owner).await? == 0 {
                sleep(AGAIN).await;
            }
            let give_back = "DELETE FROM leases WHERE name = ? AND owner = ?";
            while changed(connection, give_back, name, owner).await? == 0 {}
        }
        Recipe::ByName => {
            let got: Option<i32> = connection
                .exec_first("SELECT get_lock(concat('', ?), 100)", (name,))
                .await?;
            if got != Some(1) {
                return Err("no lock in 100 s".into());
            }
            connection
                .exec_drop("DO release_lock(concat('', ?))", (name,))
                .await?;
        }
        Recipe::ForUpdate => {
            connection.query_drop("BEGIN").await?;
            let lock = "SELECT name FROM wanted WHERE name = ? FOR UPDATE";
            connection.exec_drop(lock, (name,)).await?;
            connection.query_drop("COMMIT").await?;
        }
    }
    Ok(())
}

/// How many rows a statement changed: none, if it was undone because of a deadlock.
async fn changed(
    connection: &mut mysql_async::Conn,
    statement: &str,
    name: i32,
    owner: i32,
) -> Result<u64, Failure> {
    match connection.exec_drop(statement, (name, owner)).await {
        Ok(()) => Ok(connection.affected_rows()),
        Err(mysql_async::Error::Server(error)) if error.code == DEADLOCK => Ok(0),
        Err(error) => Err(error.into()),
    }
}
