//! A shard in this process's memory: the embedded default, and what every other backend is
//! compared with. It is also the fault injector.
//!
//! ```text
//! link ──(stall, latency)──▶ shard: one lock ──▶ state: arm, mark_quiet, raise; migration, decommission; inspect
//!                              │    │              └──▶ batch: acquire, renew, release, adopt, pass
//!                              │    └──▶ listeners: messages to clients
//!                              └─ faults: lost messages, ended connections
//! ```
//!
//! `state`, `batch`, `records`, `queues` and `imports` are pure: the time is passed in.

mod armed;
mod aside;
mod batch;
mod carry;
mod counters;
mod decommission;
mod faults;
mod imports;
mod inspect;
mod link;
mod listeners;
mod losses;
mod migration;
mod queue;
mod queues;
mod records;
mod shard;
mod shared;
mod state;
mod subscription;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use faults::Faults;
pub use shard::MemoryShard;
pub use state::Traces;

/// Whole milliseconds of `length`, as a server counts them.
fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
