//! The topology's record: its home, its fences and copies, and what puts it back in force. One slot, at
//! two or three shards, all of them members.
//!
//! Start with [`Rule`], then `record.rs`, `state.rs` (what a shard and an engine know) and
//! `recover.rs`.
//!
//! Engines are not among the state but for their recoveries: what is done in a record's name may be
//! done whenever **a process** may have read that record. So there are any number of engines, dead, late,
//! or woken after years. Locks are here to be lost: processes hold them, and every request of theirs is
//! answered at once. What may go wrong with those is another model's, [`slot`](crate::slot).

mod actions;
mod clean;
mod configurations;
mod controls;
mod forget;
mod ledger;
mod model;
mod properties;
mod record;
mod rest;
mod rules;
mod state;

mod arm;
mod locks;
mod mover;
mod recover;
mod restart;
mod swap;
mod tick;

pub use actions::Action;
pub use clean::clean;
pub use configurations::Configuration;
pub use controls::{Control, control};
pub use ledger::Event;
pub use model::TopologyModel;
pub use mover::Step;
pub use recover::View;
pub use restart::Survival;
pub use rules::Rule;
pub use state::World;
