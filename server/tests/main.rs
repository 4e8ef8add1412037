//! The service over real Redis servers.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod access;
mod accounts;
mod admin;
mod bytes;
mod client;
mod counters;
mod dashboard;
mod handles;
mod handoff;
mod json;
mod limits;
mod locks;
mod monitor;
mod relayed;
mod replicated;
mod resize;
mod restarts;
mod scene;
mod sessions;
mod shares;
mod stops;
mod tls;
