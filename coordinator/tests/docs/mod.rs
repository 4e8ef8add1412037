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
mod undone;
mod witnessed;
mod znodes;
mod zookeeper;

use std::{sync::Arc, time::Duration};

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::shard::postgres::Tables;
use ringfence_test_support::database::postgresql::PostgreSql;

use crate::{
    docs_fixture::Docs, etcd_fixture::OnEtcd, mariadb_fixture::Maria, postgres_fixture::Postgres,
    zookeeper_fixture::OnZookeeper,
};

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
