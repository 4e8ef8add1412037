//! One hot counter as N segments: a balance that many change at once, and that never loses or mints
//! a coin.
//!
//! ```text
//! Head       which segments there are (one record, compare-and-swap)
//! Request    to the home of its id    (one atomic step at one segment)
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
//! The rules are pure, and nothing here reads a clock: a segment's storage tells it the time.

mod amount;
mod change;
mod id;
mod layout;
pub mod limits;
pub mod segment;
mod terms;

pub use amount::{Amount, AmountError};
pub use change::Change;
pub use id::{Account, Caller, HASH_SEED, NameError, RequestId};
pub use layout::{Head, HeadError, Layout};
pub use terms::{Terms, TermsError};
