//! The connection on which a client gets notifications.

use std::time::Duration;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use redis::InfoDict;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::ClientId,
    shard::{Shard as _, ShardError, Subscription},
};
use ringfence_test_support::{Relay, eventually};
use tokio::time::timeout;

use super::{Desk, acquire, key, nonce, release};
use crate::postgres_fixture::{Postgres, address};

/// Longer than it takes to notice that a server is silent, on a busy machine too.
const NOTICED: Duration = Duration::from_secs(120);

/// The error with which `subscription` ends.
async fn end(subscription: &mut dyn Subscription) -> ShardError {
    let ended = timeout(NOTICED, async {
        loop {
            // Dropped each time, well before any time-out.
            if let Ok(Err(error)) = timeout(Duration::from_millis(50), subscription.next()).await {
                return error;
            }
        }
    });
    ended.await.expect("the end is noticed")
}

#[tokio::test]
async fn messages_come_before_the_end() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    let mut subscription = desk.redis.shard().listen(nonce(2).client).await.unwrap();
    desk.one(acquire(&key, 1)).await;
    desk.one(acquire(&key, 2)).await;
    desk.one(release(&key, 1)).await;
    let () = desk.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    // Read after the end.
    let turn = timeout(NOTICED, subscription.next()).await.unwrap();
    assert!(format!("{turn:?}").contains("Granted"), "{turn:?}");
    let error = end(&mut *subscription).await;
    assert!(error.ends_link() && error.is_retryable(), "{error}");
    // And again.
    end(&mut *subscription).await;
}

#[tokio::test]
async fn a_silent_server_is_noticed() {
    let mut desk = Desk::quiet().await;
    let mut subscription = desk.redis.impatient().listen(ClientId(7)).await.unwrap();
    let server: InfoDict = desk.ask(&["INFO", "server"]).await;
    let pid = Pid::from_raw(server.get("process_id").unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    let error = end(&mut *subscription).await;
    assert!(error.ends_link() && error.is_retryable(), "{error}");
}

/// As if a firewall had forgotten the connection.
#[tokio::test]
async fn a_silent_way_to_postgresql_is_noticed() {
    let mut fixture = Postgres::new().await;
    let way = Relay::to(fixture.server.port()).await;
    fixture.options.address = address("postgres", way.port(), None);
    fixture.options.response_timeout = Duration::from_secs(2);
    let mut subscription = fixture.another().listen(ClientId(7)).await.unwrap();
    way.forget();
    let error = end(&mut *subscription).await;
    assert!(error.ends_link() && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_healthy_connection_without_messages_stays() {
    let mut desk = Desk::quiet().await;
    let mut subscription = desk.redis.shard().listen(nonce(2).client).await.unwrap();
    let next = timeout(Duration::from_secs(5), subscription.next()).await;
    assert!(next.is_err(), "{next:?}");
    let key = key("key");
    desk.one(acquire(&key, 2)).await;
    desk.one(acquire(&key, 1)).await;
    let contended = timeout(NOTICED, subscription.next()).await.unwrap();
    assert!(
        format!("{contended:?}").contains("Contended"),
        "{contended:?}"
    );
}

#[tokio::test]
async fn it_is_named_and_ends_with_its_listener() {
    let mut desk = Desk::quiet().await;
    let subscription = desk.redis.shard().listen(ClientId(7)).await.unwrap();
    let name = format!("name=rf:{}:notify ", ClientId(7));
    assert!(
        desk.ask::<String>(&["CLIENT", "LIST"])
            .await
            .contains(&name)
    );
    drop(subscription);
    let raw = desk.redis.raw().await;
    eventually("the connection ends", || {
        let mut raw = raw.clone();
        let name = &name;
        async move {
            let list = redis::cmd("CLIENT").arg("LIST").to_owned();
            let list: String = list.query_async(&mut raw).await.unwrap();
            !list.contains(name)
        }
    })
    .await;
}
