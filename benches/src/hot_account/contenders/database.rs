//! From rows of a database: one UPDATE, committed. Tasks share a pool of connections, over Unix sockets.

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use ringfence_test_support::database::{mariadb, postgresql};
use tokio::sync::Mutex;

use super::super::setup::Setup;
use super::{Account, PUT_IN, Reach, Taker};
use crate::Failure;

/// Most connections in a pool: a database is slower with one per task.
const CONNECTIONS_MAX: usize = 64;

/// Rows of PostgreSQL.
pub(crate) struct PostgreSql {
    connections: Vec<(postgresql::Connection, tokio_postgres::Statement)>,
    rows: u32,
}

/// Rows of MariaDB.
pub(crate) struct MariaDb {
    connections: Vec<Mutex<mysql_async::Conn>>,
    rows: u32,
}

/// Each set-up has a table of its own.
fn table(rows: u32) -> String {
    format!("accounts_{rows}")
}

fn created(rows: u32) -> Vec<String> {
    let (table, each) = (table(rows), PUT_IN / i64::from(rows));
    let create = format!("CREATE TABLE {table} (id INT PRIMARY KEY, value BIGINT NOT NULL)");
    let insert = |row| format!("INSERT INTO {table} VALUES ({row}, {each})");
    std::iter::once(create)
        .chain((0..rows).map(insert))
        .collect()
}

/// Never below zero.
fn deduct(rows: u32, placeholder: &str) -> String {
    let table = table(rows);
    format!("UPDATE {table} SET value = value - 1 WHERE id = {placeholder} AND value >= 1")
}

/// Connections for the greatest of these numbers of tasks.
fn connections_for(tasks: &[usize]) -> usize {
    let most = tasks.iter().copied().max().unwrap_or(1);
    most.min(CONNECTIONS_MAX)
}

fn row(task: usize, rows: u32) -> i32 {
    i32::try_from(task % rows as usize).expect("rows are few")
}

impl PostgreSql {
    pub(crate) async fn new(
        setup: &Setup,
        tasks: &[usize],
        reach: &Reach,
        is_first: bool,
    ) -> Result<Self, Failure> {
        let (address, rows) = (&reach.database, setup.segments);
        let first = postgresql::connect(address).await?;
        for statement in created(rows).iter().filter(|_| is_first) {
            first.batch_execute(statement).await?;
        }
        let mut connections = Vec::new();
        for _ in 0..connections_for(tasks) {
            let connection = postgresql::connect(address).await?;
            let statement = connection.prepare(&deduct(rows, "$1")).await?;
            connections.push((connection, statement));
        }
        Ok(Self { connections, rows })
    }
}

#[async_trait]
impl Account for PostgreSql {
    async fn deduct(&self, taker: Taker) -> Result<(), Failure> {
        let (connection, statement) = &self.connections[taker.number % self.connections.len()];
        match connection
            .execute(statement, &[&row(taker.number, self.rows)])
            .await?
        {
            1 => Ok(()),
            changed => Err(format!("{changed} rows changed, must be 1").into()),
        }
    }

    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        let sum = format!("SELECT SUM(value)::BIGINT FROM {}", table(self.rows));
        let (connection, _) = &self.connections[0];
        let left: i64 = connection.query_one(&sum, &[]).await?.get(0);
        Ok(left.into())
    }
}

impl MariaDb {
    pub(crate) async fn new(
        setup: &Setup,
        tasks: &[usize],
        reach: &Reach,
        is_first: bool,
    ) -> Result<Self, Failure> {
        let (address, rows) = (&reach.database, setup.segments);
        let mut first = mariadb::connect(address).await?;
        for statement in created(rows).into_iter().filter(|_| is_first) {
            first.query_drop(statement).await?;
        }
        let mut connections = Vec::new();
        for _ in 0..connections_for(tasks) {
            connections.push(Mutex::new(mariadb::connect(address).await?));
        }
        Ok(Self { connections, rows })
    }
}

#[async_trait]
impl Account for MariaDb {
    async fn deduct(&self, taker: Taker) -> Result<(), Failure> {
        let mut connection = self.connections[taker.number % self.connections.len()]
            .lock()
            .await;
        let row = row(taker.number, self.rows);
        connection.exec_drop(deduct(self.rows, "?"), (row,)).await?;
        match connection.affected_rows() {
            1 => Ok(()),
            changed => Err(format!("{changed} rows changed, must be 1").into()),
        }
    }

    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        let sum = format!(
            "SELECT CAST(SUM(value) AS SIGNED) FROM {}",
            table(self.rows)
        );
        let mut connection = self.connections[0].lock().await;
        let left: Option<i64> = connection.query_first(sum).await?;
        Ok(left.ok_or("no rows")?.into())
    }
}
