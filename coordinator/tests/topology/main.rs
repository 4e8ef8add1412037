//! One topology, whoever founds it and whatever happens meanwhile.

#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod first_use;
mod home;
mod leftovers;
mod processes;
mod recover;
mod seeds;
mod servers;
mod suite;
