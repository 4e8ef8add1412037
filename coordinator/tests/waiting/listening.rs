//! The connection that a client is told over.

use std::time::Duration;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use redis::InfoDict;
use ringfence_coordinator::{
    ids::ClientId,
    shard::{ShardError, Wakes, conformance::Fixture},
};
use ringfence_test_support::eventually;
use tokio::time::timeout;

use super::{Desk, acquire, key, nonce, release};

/// Longer than it takes to notice that a server is silent, on a busy machine too.
const NOTICED: Duration = Duration::from_secs(20);

/// The end of `wakes`, asked for again and again.
async fn end(wakes: &mut dyn Wakes) -> ShardError {
    let ended = timeout(NOTICED, async {
        loop {
            // Dropped each time, well before any time-out.
            if let Ok(Err(error)) = timeout(Duration::from_millis(50), wakes.next()).await {
                return error;
            }
        }
    });
    ended.await.expect("the end is noticed")
}

#[tokio::test]
async fn messages_and_then_the_end_are_told() {
    let (mut desk, key) = (Desk::quiet().await, key("key"));
    let mut wakes = desk.redis.shard().listen(nonce(2).client).await.unwrap();
    desk.one(acquire(&key, 1)).await;
    desk.one(acquire(&key, 2)).await;
    desk.one(release(&key, 1)).await;
    let () = desk.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    // Read after the end.
    let turn = timeout(NOTICED, wakes.next()).await.unwrap();
    assert!(format!("{turn:?}").contains("Turn"), "{turn:?}");
    let error = end(&mut *wakes).await;
    assert!(error.ends_link() && error.is_retryable(), "{error}");
    // And again.
    end(&mut *wakes).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_any_more_is_noticed() {
    let mut desk = Desk::quiet().await;
    let mut wakes = desk.redis.shard().listen(ClientId(7)).await.unwrap();
    let server: InfoDict = desk.ask(&["INFO", "server"]).await;
    let pid = Pid::from_raw(server.get("process_id").unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    let error = end(&mut *wakes).await;
    assert!(error.ends_link() && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_healthy_connection_on_which_nothing_is_said_stays() {
    let mut desk = Desk::quiet().await;
    let mut wakes = desk.redis.shard().listen(nonce(2).client).await.unwrap();
    let next = timeout(Duration::from_secs(5), wakes.next()).await;
    assert!(next.is_err(), "{next:?}");
    let key = key("key");
    desk.one(acquire(&key, 2)).await;
    desk.one(acquire(&key, 1)).await;
    let wanted = timeout(NOTICED, wakes.next()).await.unwrap();
    assert!(format!("{wanted:?}").contains("Wanted"), "{wanted:?}");
}

#[tokio::test]
async fn it_is_named_and_ends_with_whoever_listened() {
    let mut desk = Desk::quiet().await;
    let wakes = desk.redis.shard().listen(ClientId(7)).await.unwrap();
    let name = format!("name=rf:{}:wake ", ClientId(7));
    assert!(
        desk.ask::<String>(&["CLIENT", "LIST"])
            .await
            .contains(&name)
    );
    drop(wakes);
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
