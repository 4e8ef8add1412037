//! Waiting for one key at one shard: the queue, turns, hand-off and linger, through restarts.
//!
//! Start with [`Rule`], then `state.rs` (what a shard and a process know) and `network.rs`; every
//! verb has a file with both its sides, the process's and the shard's.
//!
//! Time is whole ticks, and only remaining and past times are kept, so that states meet
//! again. When a request was sent is therefore told by its **age**: no clock is compared with
//! another.

mod actions;
mod configurations;
mod controls;
mod forget;
mod ledger;
mod model;
mod network;
mod properties;
mod rules;
mod state;
mod steps;

mod acquire;
mod linger;
mod pass;
mod release;
mod renew;
mod reserve;
mod restart;
mod seal;
mod tick;

pub use actions::Action;
pub use configurations::{Budget, Configuration, Pace, clean};
pub use controls::{Control, control};
pub use ledger::Event;
pub use model::QueueModel;
pub use network::{Answer, Ask, Push, Reply, Request};
pub use restart::Survival;
pub use rules::Rule;
pub use state::World;

pub use crate::words::{Nonce, Token};
