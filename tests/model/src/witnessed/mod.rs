//! Leases at a store whose transactions see no clock, such as etcd: a lock is over once another process has seen, by its
//! own clock, that neither the lock's document nor the holder's beat changed for a lease. One key, two processes.
//!
//! Start with [`Rule`], then `state.rs`; `store.rs` is what a commit does, `process.rs` what a process makes of the answer.
//!
//! Left out: clocks of different rates, several keys, and the order of waiters: a document has one ticket.

mod actions;
mod configurations;
mod controls;
mod model;
mod process;
mod properties;
mod rules;
mod state;
mod store;

pub use actions::Action;
pub use configurations::{Budget, Configuration, clean};
pub use controls::{Control, control};
pub use model::WitnessedModel;
pub use rules::Rule;
pub use state::{Event, World};
