//! Leases at a store whose transactions see no clock, such as etcd: the clock is a key, which processes put forward by the
//! time for which they saw it unchanged. One lock, two processes.
//!
//! Start with [`Rule`], then `state.rs`; `sight.rs` is what a process knows of the clock, `store.rs` what a request does
//! there, `process.rs` what a process makes of the answer.
//!
//! Left out: clocks of different rates, several locks, and the order of waiters: a document has one ticket.

mod actions;
mod configurations;
mod controls;
mod model;
mod process;
mod properties;
mod rules;
mod sight;
mod state;
mod store;

pub use actions::{Action, Way};
pub use configurations::{Budget, Configuration, clean};
pub use controls::{Control, control};
pub use model::WitnessedModel;
pub use rules::Rule;
pub use state::{Event, World};
