//! Shards of documents, under processes that get in each other's way.

mod crash;
mod etcd;
mod held_up;
mod large;
mod mutants;
mod pooled;
mod races;
mod recalled;
mod suite;
mod tickets;
mod undone;
mod versions;
mod witnessed;
mod znodes;
mod zookeeper;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    etcd::EtcdOptions,
    ids::ClientId,
    random::Random,
    shard::{
        ServerOptions,
        mysql::MysqlOptions,
        postgres::{PostgresOptions, Tables},
        redis::RedisOptions,
    },
    zookeeper::ZookeeperOptions,
};
use ringfence_test_support::database::postgresql::PostgreSql;
use tokio::{net::TcpListener, time::timeout};

use crate::{
    docs_fixture::Docs, etcd_fixture::OnEtcd, mariadb_fixture::Maria, postgres_fixture::Postgres,
    zookeeper_fixture::OnZookeeper,
};

/// However long a server would be asked again: a caller that does not wait gets its answer.
#[tokio::test]
async fn a_server_that_is_not_there_is_asked_once_whatever_its_kind() {
    const LONG: Duration = Duration::from_secs(3600);
    let servers: [ServerOptions; 5] = [
        RedisOptions {
            connect_timeout: LONG,
            response_timeout: LONG,
            ..RedisOptions::new("redis://127.0.0.1:1".parse().unwrap(), ClientId(7))
        }
        .into(),
        PostgresOptions {
            connect_timeout: LONG,
            response_timeout: LONG,
            ..PostgresOptions::new("postgres://u@127.0.0.1:1/db".parse().unwrap())
        }
        .into(),
        MysqlOptions {
            connect_timeout: LONG,
            response_timeout: LONG,
            ..MysqlOptions::new("mysql://u@127.0.0.1:1/db".parse().unwrap())
        }
        .into(),
        EtcdOptions {
            response_timeout: LONG,
            patience: LONG,
            ..EtcdOptions::new("etcd://127.0.0.1:1,127.0.0.1:2".parse().unwrap())
        }
        .into(),
        ZookeeperOptions {
            response_timeout: LONG,
            patience: LONG,
            ..ZookeeperOptions::new("zookeeper://127.0.0.1:1,127.0.0.1:2".parse().unwrap())
        }
        .into(),
    ];
    let random = Arc::new(Random::from_os());
    for server in servers {
        let shard = server.shard(&random);
        let connected = timeout(races::WITHIN, shard.connect_control(None)).await;
        let connected = connected.unwrap_or_else(|_| panic!("{} is asked on", server.address()));
        let error = connected.expect_err("nothing is there");
        assert!(error.is_retryable(), "{error}");
    }
}

/// A process has many users of the connection for rare requests. They do not wait for one attempt each to reach a server.
#[tokio::test]
async fn those_that_share_a_connection_share_the_attempts_to_open_it() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let connect_timeout = Duration::from_millis(300);
    let postgres = PostgresOptions {
        connect_timeout,
        ..PostgresOptions::new(format!("postgres://u@127.0.0.1:{port}/db").parse().unwrap())
    };
    let mysql = MysqlOptions {
        connect_timeout,
        ..MysqlOptions::new(format!("mysql://u@127.0.0.1:{port}/db").parse().unwrap())
    };
    let random = Arc::new(Random::from_os());
    for server in [ServerOptions::from(postgres), mysql.into()] {
        let shard = server.shard(&random);
        let users = (0..8).map(|_| shard.connect_control(None));
        let mut attempts = Vec::new();
        let count = async {
            loop {
                attempts.push(silent.accept().await.unwrap());
            }
        };
        tokio::select! {
            biased;
            refused = join_all(users) => assert!(refused.iter().all(Result::is_err)),
            () = count => {}
        }
        let attempts = attempts.len();
        assert!((1..=2).contains(&attempts), "{attempts} attempts");
    }
}

/// Requests and answers overtake each other at random.
#[tokio::test]
async fn of_processes_that_overtake_each_other_one_holds_a_lock_and_tokens_rise() {
    let docs = Docs::new().await;
    docs.slow_down().await;
    races::run(&docs, 200).await;
}

/// A renewal whose documents were read in time, and which is committed late.
#[tokio::test]
async fn what_was_called_free_is_not_renewed_later() {
    let docs = Docs::new().await;
    docs.slow_down().await;
    races::proofs(&docs, 64, Duration::from_millis(300)).await;
}

#[tokio::test]
#[ignore = "long: PostgreSQL and etcd have it"]
async fn of_processes_on_mariadb_one_holds_a_lock_and_tokens_rise() {
    races::run(&Maria::new().await, 50).await;
}

#[tokio::test]
async fn of_processes_on_postgresql_one_holds_a_lock_and_tokens_rise() {
    races::run(&Postgres::new().await, 50).await;
}

#[tokio::test]
async fn of_processes_on_etcd_one_holds_a_lock_and_tokens_rise() {
    races::run(&OnEtcd::new().await, 50).await;
}

#[tokio::test]
#[ignore = "long: PostgreSQL and etcd have it"]
async fn of_processes_on_zookeeper_one_holds_a_lock_and_tokens_rise() {
    races::run(&OnZookeeper::new().await, 50).await;
}

/// Another user may make a function with a name that the shard's functions call, and that fits better.
#[tokio::test]
async fn on_postgresql_functions_of_others_are_not_called() {
    let shard = Postgres::on(Arc::new(PostgreSql::spawn().await), Tables::Logged).await;
    let theirs =
        "CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint LANGUAGE plpgsql
                  AS 'BEGIN RAISE EXCEPTION ''a function of others''; END'";
    shard.raw().await.batch_execute(theirs).await.unwrap();
    races::run(&shard, 1).await;
}
