//! A server that is not the one it says, or to which we are nobody, is not spoken to.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use ringfence_coordinator::{
    ids::ClientId,
    shard::{
        Lane, Shard, ShardError,
        redis::{RedisOptions, RedisShard},
    },
    spawn::RedisServer,
};
use ringfence_test_support::Secured;

/// Connects to `url`.
async fn connect(url: &str) -> Result<(), ShardError> {
    let options = RedisOptions::new(url.parse().unwrap(), ClientId(7));
    let link = RedisShard::new(options).connect(Lane::Control, None).await;
    link.map(drop)
}

/// The reason why `url` cannot be connected to.
async fn refused(url: &str) -> String {
    match connect(url).await {
        Err(ShardError::Unreachable { reason }) => reason,
        other => panic!("connected: {other:?}"),
    }
}

#[tokio::test]
async fn only_who_shows_and_sees_the_right_certificate_connects() {
    let (secured, stranger) = (Secured::default(), Secured::default());
    let (server, port) = secured.spawn(RedisServer::builder()).await;
    connect(&secured.url(port, true)).await.unwrap();

    let reason = refused(&stranger.url(port, true)).await;
    assert!(reason.contains("certificate"), "{reason}");
    refused(&secured.url(port, false)).await;
    // Certified for 127.0.0.1, and for no name.
    let other_name = secured.url(port, true).replace("127.0.0.1", "localhost");
    let reason = refused(&other_name).await;
    assert!(reason.contains("certificate"), "{reason}");
    // A port that speaks no TLS.
    refused(&secured.url(server.port(), true)).await;
}
