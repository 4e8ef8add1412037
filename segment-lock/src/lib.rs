//! One hot counter as N segments: a balance that many change at once, and that never loses or mints
//! a coin.
//!
//! ```text
//! Counter ─ deposit, deduct, reserve, transfer, balance, resegment
//!    │  Manifest: which segments there are            (one record, compare-and-swap)
//!    │  Request ─▶ Segments::call(home of the id) (one atomic step at one segment)
//!    ▼
//! Segment ─ one pure function a request: segment/op.rs, lend.rs, land.rs, …
//! ```
//!
//! A request has an id, and its id a **home** segment, where it is decided and remembered: a repeat
//! meets its first answer. A home that is short **borrows**: another segment lends, the money is in
//! flight, the home lands it; each step is numbered, so that it counts once and anyone may finish
//! it. **Insufficient** is answered only if the whole was short at some instant of the request. A
//! **transfer** holds the money at its source until the destination has decided.
//!
//! Beside it, for data of one's own that is split in rows: a [segmented lock](lock), N locks of one name.
//!
//! The rules are pure ([`segment`]); where segments are stored is behind [`Segments`] and [`Manifests`],
//! in memory for example ([`memory`]). Nothing here reads a clock: a segment's storage tells it the
//! time.
//!
//! # Examples
//!
//! ```
//! use std::{sync::Arc, time::{SystemTime, UNIX_EPOCH}};
//! use ringfence_segment_lock::{Account, Amount, Counter, RequestId, Storage, Terms, memory::Memory};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[expect(clippy::disallowed_methods, reason = "an example has no other clock")]
//! let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
//! let storage = Storage::new(Arc::new(Memory::new(Box::new(now_ms))), 1);
//!
//! let coins = Counter::create(storage, Account::new("coins/42")?, Terms::default(), 4).await?;
//! coins.deposit(&RequestId::new(now_ms(), "gift-1")?, Amount::new(100)?).await?;
//!
//! // A repeat has the same id, and takes effect once.
//! let purchase = RequestId::new(now_ms(), "order-7")?;
//! coins.deduct(&purchase, Amount::new(30)?).await?;
//! coins.deduct(&purchase, Amount::new(30)?).await?;
//! assert_eq!(coins.exact_balance().await?.available, 70);
//! # Ok(())
//! # }
//! ```

mod amount;
mod change;
pub mod counter;
mod failure;
mod id;
mod layout;
pub mod limits;
pub mod lock;
pub mod memory;
pub mod segment;
mod spread;
mod storage;
mod terms;

pub use amount::{Amount, AmountError};
pub use change::Change;
pub use counter::{
    Balance, Counter, CounterError, Ended, Inspection, LostSegment, LostSegments, Reserved,
    Storage, Swept,
};
pub use failure::{Effect, Failure};
pub use id::{Account, Caller, HASH_SEED, NameError, RequestId};
pub use layout::{Layout, Manifest, ManifestError, Seen};
pub use spread::spread;
pub use storage::{At, Manifests, Segments, StorageError, VersionedManifest};
pub use terms::{Durability, Terms, TermsError};
