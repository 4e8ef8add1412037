//! Which servers are used, and how.

use std::collections::BTreeSet;

use ringfence_client::{AcquireError, Client, ReleaseAnswer};
use ringfence_test_support::{Servers, eventually, pause};
use tokio::time::timeout;

use super::{DEADLINE, SECOND, take_and_give_back};

#[tokio::test]
async fn a_second_run_on_the_same_servers_just_works() {
    let servers = Servers::spawn(3).await;
    let mut last = None;
    for _ in 0..3 {
        let client = servers.client().await;
        let guard = client.lock("key").try_acquire().await.unwrap();
        assert!(Some(guard.token()) > last);
        last = Some(guard.token());
        guard.release().await;
        client.close().await;
    }
}

#[tokio::test]
async fn one_seed_finds_every_shard() {
    let servers = Servers::spawn(3).await;
    let founder = servers.client().await;
    let client = Client::builder()
        .redis(servers.urls().into_iter().skip(2))
        .build()
        .await
        .unwrap();
    assert_eq!(client.topology().id, founder.topology().id);
    assert_eq!(client.shards().await.len(), 3);
    let _held = founder.lock("key").try_acquire().await.unwrap();
    let refused = client.lock("key").try_acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::Held { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_server_that_could_evict_a_lock_is_refused_with_what_mends_it() {
    let servers =
        Servers::spawn_with(1, |builder| builder.set("maxmemory-policy", "volatile-lru")).await;
    let refused = servers.builder().build().await.unwrap_err().to_string();
    assert!(
        refused.contains("CONFIG SET maxmemory-policy noeviction"),
        "{refused}"
    );
    servers
        .ask::<()>(0, &["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .await;
    take_and_give_back(&servers.client().await, "key").await;
}

/// Looked at again while it runs.
#[tokio::test]
#[ignore = "long: settings are looked at every 30 s"]
async fn a_server_that_comes_to_evict_grants_nothing_new_until_it_is_mended() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let guard = client
        .lock("held")
        .lease(9 * SECOND)
        .acquire()
        .await
        .unwrap();
    let comes_to = async |policy: &str, what: &str, refuses: bool| {
        let set = ["CONFIG", "SET", "maxmemory-policy", policy];
        servers.ask::<()>(0, &set).await;
        let comes = async {
            loop {
                match client.lock("new").try_acquire().await {
                    Ok(new) if refuses => drop(new.release().await),
                    Ok(_) => return String::new(),
                    Err(refused) if refuses => return refused.to_string(),
                    Err(_) => {}
                }
                pause().await;
            }
        };
        let comes = timeout(DEADLINE, comes).await;
        comes.unwrap_or_else(|_| panic!("never {what}"))
    };
    let refused = comes_to("allkeys-lru", "refused", true).await;
    let mend = "CONFIG SET maxmemory-policy noeviction";
    assert!(refused.contains(mend), "{refused}");
    let before = guard.deadline();
    eventually("renewed", async || guard.deadline() > before).await;
    comes_to("noeviction", "granted", false).await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_cluster_node_is_refused() {
    let servers = Servers::spawn_with(1, |builder| builder.set("cluster-enabled", "yes")).await;
    let refused = servers.builder().build().await.unwrap_err().to_string();
    assert!(refused.contains("cluster_enabled is 1"), "{refused}");
}

#[tokio::test]
async fn a_password_is_never_shown() {
    let servers = Servers::spawn(1).await;
    let url = format!(
        "redis://locker:s3cret@127.0.0.1:{}",
        servers.servers[0].port()
    );
    let builder = Client::builder().redis([url]);
    let shown = format!("{builder:?}");
    let refused = builder.build().await.unwrap_err();
    let shown = format!("{shown} {refused} {refused:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn connections_are_named_for_their_lanes() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    take_and_give_back(&client, "key").await;
    eventually("a work and a renew connection", async || {
        let list: String = servers.ask(0, &["CLIENT", "LIST"]).await;
        let names = list
            .split_whitespace()
            .filter_map(|field| field.strip_prefix("name=rf:"));
        let lanes: BTreeSet<&str> = names.filter_map(|name| name.split(':').nth(1)).collect();
        lanes.contains("work") && lanes.contains("renew")
    })
    .await;
}

#[tokio::test]
async fn a_server_that_may_have_held_locks_waits_for_them() {
    let servers = Servers::spawn(1).await;
    let careful = || {
        Client::builder()
            .redis(servers.urls())
            .max_lease(2 * SECOND)
    };
    servers.ask::<()>(0, &["FLUSHALL"]).await;
    let client = careful().build().await.unwrap();
    let refused = client.lock("key").try_acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::Grace { .. })),
        "{refused:?}"
    );
    client
        .lock("key")
        .wait(DEADLINE)
        .acquire()
        .await
        .unwrap()
        .release()
        .await;

    // Once its timers have run out, a client that had to check every slot marks it quiet.
    eventually("quiet", async || {
        drop(client.lock("key").acquire().await.unwrap());
        let quiet: Vec<String> = servers.ask(0, &["KEYS", "ringfence:life:*:quiet"]).await;
        !quiet.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_server_that_was_up_for_long_has_nothing_to_wait_for() {
    let servers = Servers::spawn(1).await;
    eventually("up for three seconds", async || {
        let info: String = servers.ask(0, &["INFO", "server"]).await;
        let uptime = info
            .lines()
            .find_map(|line| line.strip_prefix("uptime_in_seconds:"))
            .unwrap();
        uptime.trim().parse::<u64>().unwrap() >= 3
    })
    .await;
    let client = Client::builder()
        .redis(servers.urls())
        .max_lease(2 * SECOND)
        .build()
        .await
        .unwrap();
    take_and_give_back(&client, "key").await;
}

#[tokio::test]
async fn nothing_is_left_behind_but_what_is_armed() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    take_and_give_back(&client, "first").await;
    let before: u64 = servers.ask(0, &["DBSIZE"]).await;
    for index in 0..100 {
        drop(
            client
                .lock(format!("key/{index}"))
                .try_acquire()
                .await
                .unwrap(),
        );
    }
    assert_eq!(client.close().await, 0);
    assert_eq!(servers.ask::<u64>(0, &["DBSIZE"]).await, before);
}

#[tokio::test]
async fn one_url_is_as_good_as_a_list() {
    let servers = Servers::spawn(1).await;
    let [url]: [String; 1] = servers.urls().try_into().unwrap();
    let founder = Client::builder().redis(&*url).servers_are_new(true);
    take_and_give_back(&founder.build().await.unwrap(), "key").await;
    for builder in [
        Client::builder().redis(&url),
        Client::builder().redis(url.clone()),
        Client::builder().redis([&url]),
        Client::builder().redis(vec![url.clone()]),
    ] {
        let client = builder.existing_topology(true).build().await.unwrap();
        take_and_give_back(&client, "key").await;
    }
}
