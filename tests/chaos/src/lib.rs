//! Crash safety, shown: what real processes did with real locks while their shards died, and whether
//! that was right.
//!
//! ```text
//! run ─► nemesis ─► servers, proxies, processes       by a plan that comes from the seed
//!  └──► client processes ─► locks ─► resource         each writes its history
//!                └────────► history ─► checker ─► violations
//! ```

pub mod checker;
pub mod client;
pub mod history;
pub mod resource;
pub mod run;
