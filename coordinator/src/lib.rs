//! The engine of Ringfence: holders, shards and deadlines of locks.

mod arming;
mod backoff;
pub mod clock;
pub mod driver;
pub mod engine;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod failpoint;
pub mod ids;
pub mod limits;
pub mod metrics;
pub mod mover;
pub mod name;
pub mod random;
pub mod shard;
#[cfg(feature = "spawn")]
pub mod spawn;
mod sync;
pub mod topology;
pub mod view;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
