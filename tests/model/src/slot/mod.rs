//! One key, which is one slot, at two or three shards: moves, restarts, and a shard gone for good.
//!
//! Start with [`Rule`], then `state.rs` (the knowledge of a shard and a process) and `topology.rs` (what is
//! planned, and what a mover knows of it). Every verb of a process has a file with both its sides.
//!
//! There is no mover among the state: a step of a move may happen whenever **some** mover can know
//! that it may. So there are any number of them, dead, paused, woken after years, or two at once.
//!
//! Time is whole ticks, as in [`queue`](crate::queue).

mod actions;
mod clean;
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
mod topology;

mod acquire;
mod adopt;
mod arm;
mod mover;
mod release;
mod removal;
mod renew;
mod restart;
mod tick;

pub use actions::Action;
pub use clean::clean;
pub use configurations::{Budget, Configuration};
pub use controls::{Control, control};
pub use ledger::Event;
pub use model::SlotModel;
pub use mover::Step;
pub use network::{Answer, Ask, Reply, Request};
pub use restart::Survival;
pub use rules::Rule;
pub use state::World;

pub use crate::words::{Nonce, Token};
