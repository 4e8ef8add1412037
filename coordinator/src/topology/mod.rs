//! The members and the owner of each slot: one record, changed by compare-and-swap.

mod burial;
mod constants;
mod found;
mod lives;
mod motion;
mod preview;
mod record;
mod recovered;
mod resize;
mod slots;
mod store;
mod turn;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod redis;
#[cfg(test)]
mod tests;

pub use burial::{BurialError, Dead, Opening};
pub use constants::{Constants, Removal};
pub use found::{Blueprint, Founder, shard_id};
pub use motion::{Goal, Motion, Way, Weights};
pub use preview::{Preview, Share};
pub use record::{Home, ShardEntry, ShardName, Status, Topology, Version};
pub use resize::{Change, ResizeError};
pub use store::{Swap, TopologyError, TopologyStore};
pub use turn::Round;
