//! A shard in this process's memory: the embedded default, and the reference for every other backend.
//! It is also the fault injector.
//!
//! ```text
//! link ──(stall, latency)──▶ shared: one lock ──▶ state: the documents ──▶ shard/rules
//!                              │    │              └──▶ batch, migration, inspect; counters
//!                              │    └──▶ listeners: notifications to clients
//!                              └─ faults, losses: lost messages, ended connections
//! ```
//!
//! The rules are in `shard/rules`. This module keeps their documents in a map behind one lock, and gives them
//! the time.

mod aside;
mod batch;
mod carry;
mod control;
mod counter_batch;
mod counters;
mod faults;
mod inspect;
mod kept;
mod link;
mod listeners;
mod locks;
mod losses;
mod migration;
mod shard;
mod shared;
mod state;
mod subscription;

#[cfg(test)]
mod tests;

pub use faults::Faults;
pub use shard::MemoryShard;
pub use state::Traces;
