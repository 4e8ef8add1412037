//! What a mover does to the slots that change hands.
//!
//! ```text
//! seal at A ─► import at B ─► scan A ─► list to B ─► A empty ─► open at B ─► shut at A
//! ```
//!
//! Every one of these may be repeated, by any mover. A slot changes only if the guard, the pair of the
//! move's epoch and the [step](Mode::step), rises; the same pair in the same mode is done again, without
//! effect. No timer of a shard is touched.

use std::time::Duration;

use ringfence_ring::Slot;

use super::{Cursor, Mode};
use crate::{
    ids::{Epoch, Incarnation, MapVersion, Token},
    name::LockKey,
};

/// A change of slots: to [`Sealed`](Mode::Sealed) or [`Shut`](Mode::Shut) at the shard they leave, to
/// [`Import`](Mode::Import) or [`Open`](Mode::Open) at the one they come to.
#[derive(Clone, Debug)]
pub struct Step {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// The record's version, and the record itself: the shard keeps the newest it has seen.
    pub copy: (u64, String),
    /// The version of the shard's map in the record, by which the slots migrate. A shard that is quiet at it
    /// stays so: that says nothing of them.
    pub map: MapVersion,
    /// Of the move.
    pub epoch: Epoch,
    /// What the slots become.
    pub mode: Mode,
    /// Which ones.
    pub slots: Vec<Slot>,
    /// The shard's next tokens are above this: the last of the shard that the slots come from, which
    /// its seal answered, and (epoch, 0). Of no use where slots leave: [`Token::default`].
    pub above: Token,
}

/// What came of a [`Step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// No token that the shard made until now is above this.
    pub last_token: Token,
    /// How long its grace goes on.
    pub grace_left: Duration,
    /// Slots left as they were: their guard is higher, or as high in another mode.
    pub refused: Vec<Slot>,
}

/// Asks for the keys that are held in the slots that are sealed at `epoch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Of the move.
    pub epoch: Epoch,
    /// Where the page before ended; `None`: from the start.
    pub after: Option<Cursor>,
}

/// Some of the keys held. Page by page, from a first page that began after the seal and after
/// grace, every key is listed, some of them twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// How long the shard's grace goes on: until it is over nothing is listed.
    pub grace_left: Duration,
    /// The keys.
    pub held: Vec<LockKey>,
    /// Where the next page begins. `None`: this was the last.
    pub next: Option<Cursor>,
}

/// Tells a slot's next shard which keys the former shard holds. In slots that are not
/// [`Import`](Mode::Import) at `epoch` nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Of the move.
    pub epoch: Epoch,
    /// They need a proof.
    pub held: Vec<LockKey>,
    /// The list of these slots is complete: keys that it does not name are free to be granted.
    pub complete: Vec<Slot>,
}

/// Asks which of `keys`, all that a scan found held, are still held in slots sealed at `epoch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillHeld {
    /// Of the move.
    pub epoch: Epoch,
    /// The keys.
    pub keys: Vec<LockKey>,
    /// Their slots, and others that had none: each must be sealed, or shut, at `epoch`.
    pub slots: Vec<Slot>,
}

/// The keys that are still held. A slot that is not refused, and without a key here, is permanently
/// empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldStill {
    /// How long the shard's grace goes on: until it is over nothing is empty.
    pub grace_left: Duration,
    /// The keys.
    pub keys: Vec<LockKey>,
    /// Slots that are neither sealed nor shut at the epoch.
    pub refused: Vec<Slot>,
}
