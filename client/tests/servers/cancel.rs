//! Dropping a future at any await leaves nothing locked and loses nothing: on a server, with any
//! part of a request or of its answer on the way.

use ringfence_client::{Client, limits::LEASE_MAX};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Relay, cancel};
use tokio::task::yield_now;

use crate::comeback::Stage;

/// Two clients of a server that is reached by a relay.
struct Relayed {
    client: Client,
    other: Client,
    _ways: (RedisServer, Relay, Stage),
}

impl Relayed {
    async fn spawn() -> Self {
        let server = RedisServer::spawn().await.unwrap();
        let relay = Relay::to(server.port()).await;
        let url = format!("redis://127.0.0.1:{}", relay.port());
        let stage = Stage::of(url, LEASE_MAX).await;
        Self {
            client: stage.client("client").await,
            other: stage.client("other").await,
            _ways: (server, relay, stage),
        }
    }
}

#[tokio::test]
async fn an_acquire_dropped_after_any_turn_holds_nothing() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_acquire_holds_nothing(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_wait_dropped_after_any_turn_holds_nothing() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_wait_holds_nothing(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_release_dropped_after_any_turn_still_releases() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_release_releases(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_dropped_wait_for_danger_or_loss_has_no_effect() {
    let Relayed { client, .. } = &Relayed::spawn().await;
    cancel::dropped_notices_lose_nothing(client, &yield_now).await;
}
