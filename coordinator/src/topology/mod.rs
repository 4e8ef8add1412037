//! Who is a shard, and which slots are whose: one record, changed by compare-and-swap.

mod constants;
mod found;
mod motion;
mod record;
mod recovered;
mod slots;
mod store;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod redis;

pub use constants::{Constants, Removal};
pub use found::{Blueprint, Founder, shard_id};
pub use motion::{Goal, Motion, Weights};
pub use record::{Home, ShardEntry, ShardName, Status, Topology, Version};
pub use store::{Swap, TopologyError, TopologyStore};
