//! Shards on servers that keep documents and run no scripts of ours.
//!
//! ```text
//! link ──▶ attempt: read the documents ──▶ shard/rules ──▶ commit the difference, if they are still the same
//!   ▲            ▲                                            │
//!   └─ answer ◀──┼──────────── done ◀─────────────────────────┤
//!                └──── again ◀──────── stale, or too late ◀───┘
//! ```
//!
//! The rules are in `shard/rules`: the same that a shard in memory runs. A backend implements [`Store`]. Its clock is the
//! shard's clock: it says what time it is when it reads, and refuses commits that come after the time until which their
//! answer holds.
//!
//! Such shards keep locks. They keep no counters.

mod attempt;
mod batch;
mod control;
mod counters;
mod known;
mod link;
mod locks;
mod migration;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) mod quorum;
mod shard;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod sql;
mod store;
mod subscription;
mod view;

pub(crate) use attempt::Desk;
pub use shard::DocsShard;
pub use store::{
    COMMIT_WITHIN, Commit, Committed, Document, Draw, Draws, Expected, FORGET_AFTER, Found, Glance,
    Inbox, Name, Page, SLACK_MAX, Session, Store, TokenChange, WATCHERS, Write,
};
