//! First use of a topology: two processes, with different lists of three servers, found it at once; either
//! may end at any step, messages come late, and a server may come back empty.
//!
//! Start with [`Rule`], then `state.rs`; `found.rs` is what a process does for itself, `help.rs` what it
//! does where it finds a trace of another.

mod actions;
mod configurations;
mod controls;
mod model;
mod properties;
mod rest;
mod rules;
mod state;

mod found;
mod help;

pub use actions::Action;
pub use configurations::{Configuration, beyond, clean};
pub use controls::{Control, control};
pub use model::FirstUseModel;
pub use rules::Rule;
pub use state::{Event, World};
