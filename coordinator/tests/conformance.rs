//! Every backend keeps the contract of a shard.

use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::Secured;

mod memory {
    ringfence_conformance::shard_conformance!(crate::memory_fixture::Memory::new());
}

mod docs {
    ringfence_conformance::lock_conformance!(crate::docs_fixture::Docs::new());
}

mod postgres {
    ringfence_conformance::lock_conformance!(crate::postgres_fixture::Postgres::slow());
}

mod postgres_through_a_pooler {
    ringfence_conformance::lock_conformance!(crate::postgres_fixture::Postgres::slow_and_pooled());
}

mod mariadb {
    ringfence_conformance::lock_conformance!(crate::mariadb_fixture::Maria::slow());
}

mod etcd {
    ringfence_conformance::lock_conformance!(crate::etcd_fixture::OnEtcd::slow());
}

mod zookeeper {
    ringfence_conformance::lock_conformance!(crate::zookeeper_fixture::OnZookeeper::slow());
}

mod redis {
    ringfence_conformance::shard_conformance!(crate::redis_fixture::Redis::new());
}

/// A shard that is reached over TLS, with a certificate, as a user with exactly the rights that
/// docs/operate.md lists.
async fn secured() -> crate::redis_fixture::Redis {
    let secured = Secured::default();
    let (server, port) = secured.spawn(RedisServer::builder()).await;
    crate::redis_fixture::Redis::at(server, port, move |port| secured.url(port, true)).await
}

mod redis_over_tls_with_few_rights {
    ringfence_conformance::shard_conformance!(super::secured());
}
