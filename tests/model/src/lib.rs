//! Rules of the protocol, checked by models: every interleaving of a few processes, a few shards and
//! a network that delays, loses and repeats, up to the bounds of a configuration.
//!
//! A rule is worth its place if something breaks without it. So each has a **control**: the same
//! model with that rule off, in which the checker must find the violation. The clean
//! configurations must hold, and must show that they had anything to check.
//!
//! * [`queue`] is waiting: docs/protocol.md, "Waiting". One key at one shard.
//! * [`slot`] is what keeps a lock to one holder while its slot moves, shards restart, and one is gone
//!   for good. One key, which is one slot, at two or three shards, with the mover and the topology.
//! * [`topology`] is the topology's record: how it outlives the shard that keeps it, and what late comers do
//!   in the name of one that is not in force any more.
//! * [`first_use`] is how it begins: of any number of foundings one comes into use.
//! * [`redlock`] is a lock that a majority of three ranks grants, while one of them moves, or a shard is lost: docs/protocol.md,
//!   "Replicated namespaces".
//! * [`shares`] is semaphores and read-write locks: docs/protocol.md, "Shares". One key, which is one slot, at two
//!   shards.
//! * [`sets`] is sets of locks, all or nothing: docs/protocol.md, "Sets of locks". Two or three keys, as many processes.
//! * [`segments`] is money: docs/protocol.md, "Balances in segments". An account or two, of two or three
//!   segments in all.
//! * [`legs`] is money for several accounts at once: docs/protocol.md, "Legs". A source and two destinations.
//! * [`reserve`] is tokens drawn ahead at such a store, and at others that keep documents: docs/protocol.md, "Tokens drawn ahead".
//!   One key, two sessions.
//! * [`witnessed`] is leases at a store whose transactions see no clock, such as etcd: docs/protocol.md, "A clock of witnessed
//!   time". One key, two processes.

mod check;
pub mod first_use;
pub mod legs;
pub mod queue;
pub mod redlock;
pub mod reserve;
mod ruled;
pub mod segments;
pub mod sets;
pub mod shares;
pub mod slot;
pub mod topology;
pub mod witnessed;
mod words;

pub use check::{Checkable, Verdict, check};
pub use ruled::{Control, Named, Ruled};
