//! Tokens drawn ahead: docs/protocol.md, "Tokens drawn ahead". One lock's document at a store, and two sessions, each of which
//! takes tokens from its reserve.
//!
//! Start with [`Rule`], then `state.rs`; `actions.rs` is what happens.
//!
//! Left out: leases, which `witnessed` has, and waiters: a lock is free or held. A session has one request under way.

mod actions;
mod configurations;
mod controls;
mod model;
mod properties;
mod rules;
mod state;

pub use actions::Action;
pub use configurations::{Configuration, clean};
pub use controls::{Control, control};
pub use model::ReserveModel;
pub use rules::Rule;
pub use state::{Event, World};
