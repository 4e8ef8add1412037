//! Sets of locks, all or nothing: docs/protocol.md, "Sets of locks". A few keys, in the order that all callers share, and two or
//! three processes, each of which wants some of them.
//!
//! Start with [`Rule`], then `state.rs`; `process.rs` is what a caller does, `key.rs` what happens to a key.
//!
//! Left out: how one lock is granted, which the models of a slot and of waiting have. So a holder that lives renews in time, unless
//! its lock is lost by a fault; and all clocks are one.

mod actions;
mod configurations;
mod controls;
mod key;
mod model;
mod process;
mod properties;
mod rules;
mod state;

pub use actions::Action;
pub use configurations::{Configuration, Wish, clean};
pub use controls::{Control, control};
pub use model::SetsModel;
pub use rules::Rule;
pub use state::{Event, World};
