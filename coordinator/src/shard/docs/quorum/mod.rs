//! What the stores on quorums, etcd and ZooKeeper, have in common: no transaction of theirs sees a clock.
//!
//! | file | content |
//! |---|---|
//! | `time.rs` | the shard's clock, which processes put forward |
//! | `witness.rs` | what the sessions of a process know together of the clock, and of the last token |
//! | `text.rs` | documents as text |
//! | `refusal.rs` | why a commit was not done |

pub(crate) mod refusal;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod witness;

/// Documents that a session remembers, at most: then it forgets those of locks.
pub(crate) const SEEN_MAX: usize = 32_768;
