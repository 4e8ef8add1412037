//! One hot counter as N segments: a balance that many callers change at once, and that never loses or mints a coin.
//!
//! ```text
//! Counter ─ deposit, deduct, reserve, transfer, balance, resegment
//!    │  Manifest: the segments and their places        (one record, compare-and-swap)
//!    │  Request ─▶ Segments::call(home of the id) (one atomic step at one segment)
//!    ▼
//! Segment ─ one pure function per request: segment/op.rs, lend.rs, land.rs, …
//! ```
//!
//! A request has an id. The id has a **home** segment, where the request is decided and remembered: a repeat gets the
//! recorded answer. If the home has too little, it **borrows**: another segment lends, the money is in flight, the home
//! lands it. Each step is numbered, so that it counts once and any caller can finish it. The answer is **insufficient**
//! only if the whole account had too little at some instant of the request. A **transfer** holds the money at its
//! source until the destination has decided.
//!
//! For your own data that is split into rows: a [segmented lock](lock), N locks of one name.
//!
//! The rules are pure ([`segment`]). The traits [`Segments`] and [`Manifests`] hide the storage, for example
//! [`memory`]. Nothing here reads a clock: the storage of a segment passes the time to it.
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
//! let coins = Counter::create(storage, Account::new("coins/42")?, Terms::on_disk(), 4).await?;
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
mod legs;
pub mod limits;
pub mod lock;
pub mod memory;
mod reference;
pub mod segment;
mod spread;
mod storage;
mod terms;
mod unit;

pub use amount::{Amount, AmountError};
pub use change::Change;
pub use counter::{
    AccountEffect, AccountHistory, Balance, BalanceAfter, Changed, Counter, CounterError, Details,
    Ended, Found, HistoryCursor, HistoryCursorError, Inspection, LostSegment, LostSegments,
    Remainder, Reserved, ServiceError, Storage, Swept,
};
pub use failure::{Effect, Failure};
pub use id::{Account, Caller, HASH_SEED, HashKey, NameError, RequestId};
pub use layout::{Layout, Manifest, ManifestError, Seen};
pub use legs::{Leg, Legs, LegsError};
pub use reference::{Reference, ReferenceError, Referenced};
pub use spread::spread;
pub use storage::{At, Manifests, NewAccount, Segments, StorageError, VersionedManifest};
pub use terms::{Durability, Terms, TermsError};
pub use unit::{Unit, UnitError};

/// Whether a stored field has its default, and is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
