//! The proxy and the databases.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod databases;
mod proxy;
