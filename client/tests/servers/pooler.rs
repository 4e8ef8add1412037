//! A shard on PostgreSQL behind a transaction pooler, when either of them restarts.

use std::time::Duration;

use ringfence_client::{Client, ReleaseAnswer};
use ringfence_coordinator::{ids::ClientId, name::KeyPrefix, shard::ServerOptions};
use ringfence_test_support::database::{pgbouncer::PgBouncer, postgresql::PostgreSql};

use super::comeback::granted_without_recovery;

/// Longer than a busy machine takes to restart either of them.
const MAX_LEASE: Duration = Duration::from_secs(30);

async fn client(url: &str) -> Client {
    let builder = Client::builder().servers([url.to_owned()]);
    let builder = builder.max_lease(MAX_LEASE).servers_are_new(true);
    builder.build().await.unwrap()
}

#[tokio::test]
async fn locks_stay_held_and_work_goes_on_when_the_pooler_or_its_server_is_killed() {
    let mut server = PostgreSql::spawn().await;
    let mut pooler = PgBouncer::spawn(&server, "postgres", 2).await;
    let (port, direct) = (pooler.port(), server.port());
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?direct=127.0.0.1:{direct}");
    let options = ServerOptions::new(url.parse().unwrap(), ClientId(0), KeyPrefix::default());
    options.prepare().await.unwrap();
    let (holder, other) = (client(&url).await, client(&url).await);
    let held = holder.lock("held").acquire().await.unwrap();
    let mut last = held.token();
    for is_pooler in [true, false] {
        match is_pooler {
            true => pooler.kill(),
            false => server.kill(),
        }
        let refused = other.lock("free").try_acquire().await.unwrap_err();
        assert!(refused.is_retryable(), "{refused:?}");
        match is_pooler {
            true => pooler.restart().await,
            false => server.restart().await,
        }
        for client in [&holder, &other] {
            let guard = granted_without_recovery(client, "free").await;
            assert!(guard.token() > last, "{guard:?} after {last}");
            last = guard.token();
            // On a busy machine the answer may come too late.
            assert_ne!(guard.release().await, ReleaseAnswer::Lost);
        }
        let refused = other.lock("held").try_acquire().await.unwrap_err();
        assert!(refused.is_retryable() && held.is_held(), "{refused:?}");
    }
    assert_ne!(held.release().await, ReleaseAnswer::Lost);
    assert!(other.lock("held").acquire().await.unwrap().is_held());
}
