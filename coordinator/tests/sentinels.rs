//! Sentinels name the primary, at each connection.

use ringfence_coordinator::{shard::ShardError, spawn::RedisServer};
use ringfence_test_support::{Pair, Secured, Sentinel};

use crate::tls::{connect, unusable};

/// The configuration of a Sentinel that watches the server on `port` as `name`.
fn watches(name: &str, port: u16) -> String {
    format!("sentinel monitor {name} 127.0.0.1 {port} 1\n")
}

/// Why the primary at `url` cannot be reached now.
async fn unreachable(url: &str) -> String {
    match connect(url).await {
        Err(ShardError::Unreachable { reason }) => reason,
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn the_primary_of_a_name_is_used_and_another_name_is_refused() {
    let mut server = RedisServer::spawn().await.unwrap();
    let sentinel = Sentinel::spawn("", &watches("bank", server.port())).await;
    let sentinels = [sentinel];
    connect(&Sentinel::url(&sentinels)).await.unwrap();
    let reason = unusable(&Sentinel::url_of(&sentinels, "bark")).await;
    assert!(reason.contains("no Sentinel knows this name"), "{reason}");
    server.kill();
    let reason = unreachable(&Sentinel::url(&sentinels)).await;
    let named = format!("127.0.0.1:{}, which the Sentinels name", server.port());
    assert!(reason.contains(&named), "{reason}");
}

#[tokio::test]
async fn a_demoted_primary_is_not_used() {
    let pair = Pair::spawn().await;
    let replica = pair.server(1).port();
    let sentinels = [Sentinel::spawn("", &watches("bank", replica)).await];
    let reason = unreachable(&Sentinel::url(&sentinels)).await;
    assert!(reason.contains("it is a replica of"), "{reason}");
}

/// Two of three know that another server is the primary by now.
#[tokio::test]
async fn an_outdated_sentinel_is_outvoted() {
    let (old, new) = (
        RedisServer::spawn().await.unwrap(),
        RedisServer::spawn().await.unwrap(),
    );
    let mut sentinels = Vec::new();
    for server in [&old, &new, &new] {
        sentinels.push(Sentinel::spawn("", &watches("bank", server.port())).await);
    }
    drop(old);
    for _ in 0..10 {
        connect(&Sentinel::url(&sentinels)).await.unwrap();
    }
}

#[tokio::test]
async fn sentinels_and_the_primary_have_logins_of_their_own() {
    let server = RedisServer::builder()
        .password("ours")
        .spawn()
        .await
        .unwrap();
    let configuration = format!("requirepass theirs\n{}", watches("bank", server.port()));
    let sentinel = Sentinel::spawn(":theirs@", &configuration).await;
    let url = format!("redis+sentinel://:ours@127.0.0.1:{}/bank", sentinel.port());
    connect(&format!("{url}?sentinel_pass=theirs"))
        .await
        .unwrap();
    let reason = unreachable(&url).await;
    assert!(reason.contains("NOAUTH"), "{reason}");
    let reason = unusable(&format!(
        "{}?sentinel_pass=theirs",
        url.replace(":ours@", "")
    ))
    .await;
    assert!(reason.contains("it wants a password"), "{reason}");
}

#[tokio::test]
async fn sentinels_and_the_primary_are_reached_over_tls() {
    let secured = Secured::default();
    let (_server, port) = secured.spawn(RedisServer::builder()).await;
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
    let tls_port = free.unwrap().port();
    let configuration = format!(
        "tls-port {tls_port}\ntls-replication yes\ntls-ca-cert-file {}\ntls-cert-file {}\n\
         tls-key-file {}\n{}",
        secured.path("ca.pem"),
        secured.path("server.pem"),
        secured.path("server.key"),
        watches("bank", port),
    );
    let _sentinel = Sentinel::spawn("", &configuration).await;
    let url = |known| {
        let url = secured.url(tls_port, known).replace('?', "/bank?");
        url.replace("rediss:", "rediss+sentinel:")
    };
    connect(&url(true)).await.unwrap();
    let reason = unreachable(&url(false)).await;
    assert!(reason.contains("no Sentinel answers"), "{reason}");
}
