//! The server that keeps the topology's record ends like any other shard.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, Guard, ReleaseAnswer};
use ringfence_test_support::{OnDisk, Servers, eventually};
use tokio::time::sleep;

use super::{
    SECOND,
    comeback::{MAX_LEASE, granted_after_recovery, recorded},
    home_of, keys_on, not_the_home, take_and_give_back,
};

/// Renewed every three seconds.
const LEASE: Duration = Duration::from_secs(9);

/// Three servers that keep every answered write through a kill, and a client of them.
async fn saving() -> (Servers, Client) {
    let servers = Servers::spawn_with(3, |builder| builder.set("appendonly", "yes")).await;
    let client = client(&servers).await;
    (servers, client)
}

async fn client(servers: &Servers) -> Client {
    let builder = servers.builder().max_lease(MAX_LEASE);
    builder.build().await.unwrap()
}

async fn hold(client: &Client, key: &str) -> Guard {
    client.lock(key).try_acquire().await.unwrap()
}

#[tokio::test]
async fn while_the_home_is_away_every_other_shard_goes_on() {
    let mut servers = Servers::spawn(3).await;
    let old = servers.client().await;
    let home = home_of(&servers, &old);
    let other = not_the_home(&servers, &old);
    let [held, free] = keys_on(&servers, &old, other);
    let [away, _] = keys_on(&servers, &old, home);
    let guard = old.lock(&held).lease(LEASE).acquire().await.unwrap();
    servers.servers[home].kill();

    // A client that knew the topology before, and a new one.
    let new = servers.client().await;
    let told = new.warnings().iter().any(|text| text.contains("attest"));
    assert!(told, "{:?}", new.warnings());
    // It has been renewed once more by then.
    let until = guard.deadline();
    while guard.deadline() == until {
        take_and_give_back(&old, &free).await;
        take_and_give_back(&new, &free).await;
        let refused = new.lock(&held).try_acquire().await.unwrap_err();
        assert!(matches!(refused, AcquireError::Held { .. }), "{refused:?}");
        assert!(guard.is_held());
        sleep(SECOND / 10).await;
    }
    let refused = new.lock(&away).try_acquire().await.unwrap_err();
    assert!(refused.is_retryable(), "{refused:?}");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// The guard on the home survives, newcomers wait until the recovery period is over, and tokens rise.
async fn comes_back(servers: &mut Servers, client: &Client, back: impl AsyncFnOnce(&mut Servers)) {
    let home = home_of(servers, client);
    let [held, free] = keys_on(servers, client, home);
    let guard = hold(client, &held).await;
    let before = client.topology();

    let former = guard.deadline();
    back(servers).await;
    let newcomer = self::client(servers).await;
    eventually("put back", async || {
        let is_there = recorded(&newcomer, &held).await == Some(guard.token());
        is_there && guard.deadline() > former
    })
    .await;
    let url = servers.servers[home].url();
    let granted = granted_after_recovery(&newcomer, &free, &url).await;
    assert!(granted.token() > guard.token(), "tokens rise");
    assert!(guard.is_held());

    let after = newcomer.topology();
    assert_eq!(after.id, before.id);
    assert!(after.incarnation > before.incarnation);
    assert!(after.last_epoch > before.last_epoch);
    let token = guard.token();
    let refused = newcomer.lock(&held).try_acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }), "{refused:?}");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    assert!(hold(&newcomer, &held).await.token() > token, "tokens rise");
}

#[tokio::test]
async fn a_home_that_comes_back_empty_costs_grace_and_no_lock() {
    let mut servers = Servers::spawn(3).await;
    let client = client(&servers).await;
    let home = home_of(&servers, &client);
    comes_back(&mut servers, &client, async |servers| {
        servers.servers[home].restart().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_home_that_comes_back_with_all_it_had_costs_grace_and_no_lock() {
    let (mut servers, client) = saving().await;
    let home = home_of(&servers, &client);
    comes_back(&mut servers, &client, async |servers| {
        servers.servers[home].restart().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_home_that_comes_back_with_an_older_record_costs_grace_and_no_lock() {
    let (mut servers, client) = saving().await;
    let home = home_of(&servers, &client);
    let other = not_the_home(&servers, &client);
    let on_disk = OnDisk::now(&servers.servers[home]);
    let version = client.topology().version;
    let [asked, _] = keys_on(&servers, &client, other);
    servers.servers[other].restart().await.unwrap();
    eventually("the other shard is taken in again", async || {
        let _ = client.lock(&asked).try_acquire().await;
        client.topology().version > version
    })
    .await;
    comes_back(&mut servers, &client, async |servers| {
        servers.servers[home].kill();
        on_disk.cut(0);
        servers.servers[home].restart().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_home_that_comes_back_again_and_again_is_put_right_each_time() {
    let mut servers = Servers::spawn(2).await;
    let client = client(&servers).await;
    let home = home_of(&servers, &client);
    let [key, _] = keys_on(&servers, &client, home);
    let mut token = hold(&client, &key).await.token();
    for _ in 0..10 {
        servers.servers[home].restart().await.unwrap();
        let url = servers.servers[home].url();
        let guard = granted_after_recovery(&client, &key, &url).await;
        assert!(guard.token() > token, "tokens rise");
        token = guard.token();
    }
}
