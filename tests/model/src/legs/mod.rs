//! Money for several accounts, all or nothing: two destinations promise, the source decides, the legs are paid.
//!
//! Start with [`Rule`], then `state.rs`; `servers.rs` is what the accounts do, `caller.rs` what a process does.

mod actions;
mod caller;
mod configurations;
mod controls;
mod model;
mod properties;
mod rest;
mod rules;
mod servers;
mod state;

pub use actions::Action;
pub use configurations::{Configuration, clean};
pub use controls::{Control, control};
pub use model::LegsModel;
pub use rules::Rule;
pub use state::{Event, World};
