//! Semaphores and read-write locks: one key as a record of shares, with its queue, at two shards.
//!
//! A holder has some of a capacity: a reader one share, a writer all of them. Start with [`Rule`], then
//! `state.rs` (the knowledge of a shard and a process). Every verb has a file with both its sides.
//!
//! The rules that shares have in common with the mutex (deadlines, repeats, late arms, the guards of
//! movers' steps) are checked in [`slot`](crate::slot) and [`queue`](crate::queue). Here they are always on. A reply
//! arrives in the step that makes it; only the message of a grant from the queue may be late or lost.
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
mod rest;
mod room;
mod rules;
mod state;
mod steps;

mod acquire;
mod adopt;
mod mover;
mod pass;
mod release;
mod renew;
mod restart;
mod tick;

pub use actions::Action;
pub use clean::clean;
pub use configurations::{Budget, Configuration, Participant, Want};
pub use controls::{Control, control};
pub use ledger::Event;
pub use model::SharesModel;
pub use mover::Step;
pub use network::{Ask, Request, Turn};
pub use restart::Survival;
pub use rules::Rule;
pub use state::{Terms, World};

pub use crate::words::{Nonce, Token};
