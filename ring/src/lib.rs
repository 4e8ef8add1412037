//! Lock keys to slots, slots to shards: the place of a key, and the moves when the shards change.
//!
//! ```text
//! (namespace, key) ──key_hash──▶ u64 ──SlotCount::slot_of──▶ Slot ──Table::owner──▶ ShardId
//!                                                              ▲
//!                    Membership ──Table::bootstrap, Table::plan┘
//! ```
//!
//! Pure: no I/O, no clock, no async, no global randomness. Every machine computes the same result
//! from the same input, to the last bit: only integers decide, never floats.
//!
//! # Examples
//!
//! ```
//! use ringfence_ring::{key_hash, Membership, ShardId, SlotCount, Table, Weight};
//!
//! let shards = |ids: &[&str]| -> Result<Membership, ringfence_ring::RingError> {
//!     let shards: Result<Vec<_>, _> =
//!         ids.iter().map(|id| Ok((ShardId::new(id)?, Weight::ONE))).collect();
//!     Membership::new(SlotCount::DEFAULT, shards?)
//! };
//! let table = Table::bootstrap(&shards(&["a", "b", "c"])?);
//! let slot = table.slots().slot_of(key_hash("default", b"order/42"));
//! println!("order/42 is in slot {slot}, at shard {}", table.owner(slot));
//!
//! // A fourth shard takes a quarter of the slots, and nothing else moves.
//! let plan = table.plan(&shards(&["a", "b", "c", "d"])?)?;
//! assert_eq!(plan.moves().len(), 16_384 / 4);
//! assert!(plan.moves().iter().all(|step| step.to.as_str() == "d"));
//! # Ok::<(), ringfence_ring::RingError>(())
//! ```

mod bootstrap;
mod codec;
mod error;
mod handover;
mod key;
pub mod limits;
mod membership;
mod packing;
mod plan;
mod quota;
mod rendezvous;
mod replicas;
mod shard_id;
mod slot;
mod spread;
mod table;
mod weight;
mod zone;

pub use error::RingError;
pub use key::{KEY_SEED, key_hash};
pub use membership::Membership;
pub use plan::{Move, Plan};
pub use replicas::Replicas;
pub use shard_id::ShardId;
pub use slot::{Slot, SlotCount};
pub use table::Table;
pub use weight::Weight;
pub use zone::Zone;
