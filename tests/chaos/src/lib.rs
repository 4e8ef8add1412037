//! Crash safety, shown: what real processes did with real locks while their shards died and their slots
//! moved, and whether that was right.
//!
//! ```text
//! run ─► nemesis ─► servers, proxies, processes       by a plan that comes from the seed
//!  ├──► coordinator processes                          two; then clients reach no server
//!  ├──► a process with a bad clock                    where asked for, beside coordinators: no shard may suffer from it
//!  ├──► mover processes ─► resizes                    back and forth; killed, stopped, two at once
//!  └──► client processes ─► locks ─► resource         each writes its history
//!                └────────► history ─► checker ─► violations
//! ```
//!
//! The same of accounts: [`counters`]. Beside it, what attackers can do to a coordinator: [`attack`].

pub mod attack;
pub mod checker;
pub mod client;
pub mod coordinator;
pub mod counters;
pub mod election;
pub mod history;
pub mod ledger;
pub mod mover;
pub mod neighbour;
pub mod resource;
pub mod run;
pub mod sets;
pub mod shares;
