//! Servers and connections in trouble.

use std::{cell::OnceCell, collections::HashSet, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::join_all};
use ringfence_client::{
    AcquireError, Client, Namespace, ReleaseAnswer,
    counter::{Amount, Durability, Terms},
    metrics::{Renewal, ShardMetrics},
};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Servers, eventually};
use tokio::time::{Instant, sleep};

use super::{DEADLINE, SECOND, keys_on, not_the_home, take_and_give_back};

/// Of a lock whose renewal, or end, is waited for.
const LEASE: Duration = Duration::from_secs(6);

/// The numbers of the shard of `key`.
fn numbers_of(client: &Client, key: &str) -> Arc<ShardMetrics> {
    let shard = client.shard_of(&Namespace::default(), key).unwrap();
    let shards = client.metrics().read().unwrap().shards;
    let of = shards.into_iter().find(|reading| reading.id == shard);
    of.unwrap().metrics
}

#[tokio::test]
async fn killed_connections_cost_no_lock() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let guard = client.lock("key").lease(LEASE).acquire().await.unwrap();
    for _ in 0..10 {
        servers
            .ask::<u64>(0, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .await;
        sleep(SECOND / 5).await;
        assert!(guard.is_held());
        drop(client.lock("other").wait(DEADLINE).acquire().await.unwrap());
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn something_else_under_a_key_is_reported_and_left_alone() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    take_and_give_back(&client, "key").await;
    let slot = client
        .topology()
        .table
        .slots()
        .slot_of(ringfence_ring::key_hash("default", b"key"));
    let record = format!("ringfence:{{{}}}:default:key", slot.index());
    for foreign in [
        vec!["SET", &record, "not a lock"],
        vec!["SADD", &record, "member"],
    ] {
        servers.ask::<redis::Value>(0, &["DEL", &record]).await;
        servers.ask::<redis::Value>(0, &foreign).await;
        let refused = client.lock("key").try_acquire().await.unwrap_err();
        assert!(matches!(refused, AcquireError::Foreign(_)), "{refused:?}");
        assert_eq!(servers.ask::<u64>(0, &["EXISTS", &record]).await, 1);
        take_and_give_back(&client, "other").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_delays_nobody_elses_locks_and_renewals() {
    let servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let stopped = not_the_home(&servers, &client);
    let (mut guards, mut others) = (Vec::new(), Vec::new());
    for index in 0..3 {
        let [key, other] = keys_on(&servers, &client, index);
        others.push(other);
        guards.push((
            index,
            client.lock(&key).lease(LEASE).acquire().await.unwrap(),
        ));
    }
    servers.servers[stopped].stop();
    let deadlines: Vec<_> = guards.iter().map(|(_, guard)| guard.deadline()).collect();
    // The lock of the server that stopped has ended by then, and the others were renewed.
    while guards[stopped].1.is_held()
        || (0..3).any(|index| index != stopped && guards[index].1.deadline() <= deadlines[index])
    {
        for index in (0..3).filter(|index| *index != stopped) {
            let key = &others[index];
            drop(client.lock(key).wait(DEADLINE).acquire().await.unwrap());
        }
    }
    for (index, guard) in guards {
        assert_eq!(guard.is_held(), index != stopped, "server {index}");
        drop(guard);
        let numbers = numbers_of(&client, &others[index]);
        let (renewed, failed) = (Renewal::Renewed, Renewal::Failed);
        let seen = [renewed, failed].map(|answer| numbers.renewals(answer) > 0);
        assert_eq!(seen, [index != stopped, index == stopped], "server {index}");
        let expired = u64::from(index == stopped);
        assert_eq!(numbers.expiries(), expired, "server {index}");
    }
    servers.servers[stopped].cont();
    client
        .lock(&others[stopped])
        .wait(DEADLINE)
        .acquire()
        .await
        .unwrap()
        .release()
        .await;
}

#[tokio::test]
async fn a_server_that_restarts_empty_keeps_its_holders_and_makes_others_wait() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.builder().max_lease(LEASE).build().await.unwrap();
    let restarted = not_the_home(&servers, &client);
    let [key, other] = keys_on(&servers, &client, restarted);
    let guard = client.lock(&key).acquire().await.unwrap();

    servers.servers[restarted].restart().await.unwrap();
    let back = Instant::now();
    eventually("put back", async || {
        client
            .lock(&key)
            .inspect()
            .await
            .is_ok_and(|found| found.holder.is_some())
    })
    .await;
    assert!(guard.is_held());
    let again = client.lock(&key).wait(SECOND).acquire().await.unwrap_err();
    let AcquireError::TimedOut { because, .. } = again else {
        panic!("{again:?}")
    };
    assert!(
        matches!(*because, AcquireError::Held { .. }),
        "by this process: {because:?}"
    );
    let next = client.lock(&other).wait(DEADLINE).acquire().await.unwrap();
    assert!(back.elapsed() > LEASE * 9 / 10);
    assert!(next.token() > guard.token());
    let before = guard.deadline();
    eventually("renewed", async || guard.deadline() > before).await;
    assert!(guard.is_held());
    for reading in client.metrics().read().unwrap().shards {
        let recovered =
            Some(&reading.id) == client.shard_of(&Namespace::default(), &key).ok().as_ref();
        assert_eq!(reading.metrics.recoveries(), u64::from(recovered));
        assert_eq!(reading.metrics.expiries(), 0);
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn requests_that_wait_for_replicas_have_a_connection_of_their_own() {
    let servers = Servers::spawn(1).await;
    let server = &servers.servers[0];
    let replica = RedisServer::builder().replica_of(server.port());
    let replica = replica.spawn().await.unwrap();
    let client = servers.client().await;
    let counters = client.counters();
    let create = async |name: &str, durability| {
        let terms = Terms::new(durability);
        let created = OnceCell::new();
        eventually("the replica is there", async || {
            let account = counters.create(name, terms, 1).await;
            account.is_ok_and(|account| created.set(account).is_ok())
        })
        .await;
        created.into_inner().unwrap()
    };
    let safe = create("safe", Durability::Replicas(1)).await;
    // Some of them are of the same parity.
    let names: Vec<String> = (0..8).map(|number| format!("plain-{number}")).collect();
    let plain = join_all(names.iter().map(|name| create(name, Durability::Memory))).await;
    drop(replica);

    let redis = redis::Client::open(server.url()).unwrap();
    let seen = redis.get_async_monitor().await.unwrap();
    let mut seen = seen.into_on_message::<String>();
    let one = Amount::new(1).unwrap();
    let request = counters.new_request();
    safe.deposit(&request, one).await.unwrap_err();
    for account in &plain {
        account.deposit(&request, one).await.unwrap();
    }
    let _: String = servers.ask(0, &["ECHO", "end"]).await;
    let (mut waited, mut went_on) = (HashSet::new(), HashSet::new());
    while let Some(command) = seen
        .next()
        .await
        .filter(|command| !command.contains("\"end\""))
    {
        let connection = command.split([' ', ']']).nth(2).unwrap().to_owned();
        if command.contains("\"WAIT\"") {
            waited.insert(connection);
        } else if command.contains(":plain-") {
            went_on.insert(connection);
        }
    }
    assert!(!waited.is_empty() && !went_on.is_empty());
    assert!(waited.is_disjoint(&went_on), "{waited:?} {went_on:?}");
}
