//! Balances in segments: one account's money at several shards, each change with an id that takes
//! effect once, and what moves money between segments, between accounts, and into a new layout.
//!
//! Start with [`Rule`], then `state.rs` (what a segment and a task know) and `network.rs`; every verb
//! has a file with both its sides, the task's and the segment's.
//!
//! A **task** is one call of an engine: an operation by its id, which other tasks may send again. A request,
//! once sent, arrives any number of times, at any later time, or never; each arrival is one atomic step at one
//! segment, and its answer is heard at once or never. Tasks end at any point, freezes too.
//!
//! A segment may come back without its last changes, or not at all, and goes on once a person has accepted that.
//!
//! There is no time but that of ids: a mark rises, a reservation expires and a plan is made whenever
//! it may.

mod actions;
mod clean;
mod configurations;
mod controls;
mod finish;
mod forget;
mod ledger;
mod model;
mod network;
mod operations;
mod properties;
mod rules;
mod state;
mod tasks;

mod borrow;
mod collect;
mod ids;
mod layout;
mod operate;
mod purge;
mod refuse;
mod reserve;
mod restart;
mod transfer;

pub use actions::Action;
pub use clean::clean;
pub use configurations::Configuration;
pub use controls::{Control, control};
pub use ledger::Event;
pub use model::SegmentsModel;
pub use network::{Ask, Request};
pub use operations::{Caller, Kind, Operation, Verb};
pub use rules::Rule;
pub use state::{Land, World};
