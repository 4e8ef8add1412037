//! Every backend keeps the contract of a shard.

use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Secured, WallClock};

mod memory {
    ringfence_conformance::shard_conformance!(crate::memory_fixture::Memory::new());
}

mod docs {
    ringfence_conformance::lock_conformance!(crate::docs_fixture::Docs::new());
}

mod postgres {
    ringfence_conformance::lock_conformance!(
        crate::postgres_fixture::Postgres::stopped(),
        stores: #[ignore = "long: docs::suite runs on PostgreSQL, and these on etcd"],
        rules: #[ignore = "long: the rules run on the store in memory"]
    );
}

mod postgres_through_a_pooler {
    ringfence_conformance::lock_conformance!(
        crate::postgres_fixture::Postgres::stopped_and_pooled(),
        stores: #[ignore = "long: docs::pooled has what a pooler changes"],
        rules: #[ignore = "long: the rules run on the store in memory"]
    );
}

mod mariadb {
    ringfence_conformance::lock_conformance!(
        crate::mariadb_fixture::Maria::stopped(),
        stores: #[ignore = "long: docs::suite runs on MariaDB, and these on etcd"],
        rules: #[ignore = "long: the rules run on the store in memory"]
    );
}

mod etcd {
    ringfence_conformance::lock_conformance!(
        crate::etcd_fixture::OnEtcd::stopped(),
        rules: #[ignore = "long: the rules run on the store in memory"]
    );
}

mod zookeeper {
    ringfence_conformance::lock_conformance!(
        crate::zookeeper_fixture::OnZookeeper::stopped(),
        stores: #[ignore = "long: docs::suite runs on ZooKeeper, and these on etcd"],
        rules: #[ignore = "long: the rules run on the store in memory"]
    );
}

mod redis {
    ringfence_conformance::shard_conformance!(crate::redis_fixture::Redis::stopped());
}

/// A shard on a server without Redis Functions: its scripts are called by `EVALSHA`.
async fn without_functions() -> crate::redis_fixture::Redis {
    let clock = WallClock::stopped();
    let builder = clock.set_up(RedisServer::builder());
    let server = builder.without("FCALL").without("FUNCTION").spawn();
    let server = server.await.unwrap();
    let port = server.port();
    crate::redis_fixture::Redis::at((server, clock), port, |port| {
        format!("redis://127.0.0.1:{port}")
    })
    .await
}

mod redis_without_functions {
    ringfence_conformance::shard_conformance!(
        super::without_functions(),
        rules: #[ignore = "long: the rules run on Redis with functions"]
    );
}

/// A shard that is reached over TLS, with a certificate, as a user with exactly the rights that
/// docs/operate/servers.md lists.
async fn secured() -> crate::redis_fixture::Redis {
    let secured = Secured::default();
    let clock = WallClock::stopped();
    let builder = clock.set_up(RedisServer::builder());
    let (server, port) = secured.spawn(builder).await;
    crate::redis_fixture::Redis::at((server, clock), port, move |port| secured.url(port, true))
        .await
}

mod redis_over_tls_with_few_rights {
    ringfence_conformance::shard_conformance!(
        super::secured(),
        rules: #[ignore = "long: the rules run on Redis without TLS"]
    );
}
