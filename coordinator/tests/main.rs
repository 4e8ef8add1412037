//! The backends, the driver, the engine, the topology and the mover.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod bytes;
mod conformance;
mod counters;
mod differential;
mod docs;
mod docs_fixture;
mod driver;
mod etcd_fixture;
mod lossy;
mod mariadb_fixture;
mod memory_fixture;
mod mover;
mod moving;
mod postgres_fixture;
mod queue;
mod redis_fixture;
mod sentinels;
mod shared;
mod simulated;
mod slow;
mod spawn;
mod tls;
mod topology;
mod waiting;
mod zookeeper_fixture;
