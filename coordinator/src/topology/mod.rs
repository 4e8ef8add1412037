//! The members and the owner of each slot: one record, changed by compare-and-swap.

mod checks;
mod constants;
mod decommission;
mod dial;
mod found;
mod lives;
mod member_state;
mod migration;
mod namespaces;
mod openings;
mod preview;
mod ranks;
mod record;
mod recovered;
mod resize;
mod slots;
mod store;
mod turn;

pub mod memory;
pub mod server;
#[cfg(test)]
mod tests;

pub use constants::{Constants, Removal};
pub use decommission::{DecommissionError, FailedShard};
pub use dial::Dial;
pub use found::{Blueprint, Founder, shard_id};
pub use member_state::MemberState;
pub use migration::{Goal, Migration, MigrationId, Weights};
pub use namespaces::{DeclareError, Namespaces};
pub use openings::Opening;
pub use preview::{Preview, Share};
pub use record::{ClockAlarm, Home, ShardEntry, ShardName, Status, Topology, Version};
pub use resize::{Change, ResizeError};
pub use store::{Copies, Swap, TopologyError, TopologyStore};
pub use turn::Round;
