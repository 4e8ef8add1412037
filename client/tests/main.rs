//! What locks and counters promise, through a client.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod counters;
mod locks;
#[cfg(feature = "metrics")]
mod metrics;
mod servers;
mod shares;
