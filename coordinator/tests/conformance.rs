//! Every backend keeps the contract of a shard.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod memory_fixture;
mod redis_fixture;

mod memory {
    ringfence_coordinator::shard_conformance!(super::memory_fixture::Memory::new());
}

mod redis {
    ringfence_coordinator::shard_conformance!(super::redis_fixture::Redis::new());
}
