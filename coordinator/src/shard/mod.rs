//! The contract between the engine and whatever remembers who holds what.
//!
//! A [`Shard`] is a place that can be connected to; a [`Link`] is one connection, in one life of
//! the shard. Batches of operations go in, as many answers come out.

mod control;
mod error;
mod op;
mod slots;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod redis;

use std::fmt;

use async_trait::async_trait;

pub use control::{Arm, ArmAnswer, Grace, Inspection, Settle};
pub use error::{Effect, ShardError};
pub use op::{Answers, Op, Reply, Request, ShardTime};
pub use slots::{Mode, SlotState, SlotStates};

use crate::ids::{Epoch, Incarnation, Life, Token};
use crate::name::LockKey;

/// What a connection is for. Work never waits behind work of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Acquires and releases.
    Work,
    /// Renewals, and releases that must not overtake one.
    Renew,
    /// Everything rare: arming, settling, looking.
    Control,
}

impl Lane {
    /// The word in a connection's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Renew => "renew",
            Self::Control => "control",
        }
    }
}

/// A connection as its shard numbers it, so that a later one can end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// A shard that can be connected to.
///
/// # Contract
///
/// Every implementation passes [`conformance`]. `connect` makes one physical connection and reads
/// the shard's life on it; nothing reconnects underneath a [`Link`]. If `former` is a connection to
/// the same life, it is ended before this one answers: none of its requests takes effect later.
///
/// There are no default methods: a wrapper that forgets one must not compile.
#[async_trait]
pub trait Shard: fmt::Debug + Send + Sync + 'static {
    /// Opens a connection for `lane`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    async fn connect(
        &self,
        lane: Lane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Link>, ShardError>;
}

/// One connection to a shard, in one life of it.
///
/// # Contract
///
/// * A batch is applied in order, each operation atomically; no two batches interleave within one
///   operation. Either every operation is answered or none is.
/// * Each operation may be repeated: an acquire by the same nonce finds the same token and a full
///   lease again; a second release finds nothing to do.
/// * A grant needs: this life is armed; its grace is over; the key's slot is open; no live record
///   of another nonce. Its record is written with its end, in one step.
/// * Tokens of a shard rise strictly, across keys and lives, as long as every arming has a fresh
///   epoch.
/// * Answers to operations never come from another life: [`ShardError::Unarmed`] instead, with
///   nothing written.
/// * After an error that [ends the link](ShardError::ends_link), drop it and connect anew.
#[async_trait]
pub trait Link: fmt::Debug + Send {
    /// The life this connection reads and writes.
    fn life(&self) -> &Life;

    /// What ends this connection, for the next one to name.
    fn connection(&self) -> ConnectionId;

    /// Waits until the connection is seen to have ended, which may be never: a peer that vanished
    /// says nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    async fn ended(&mut self);

    /// Applies `batch`, of at most [`BATCH_MAX`](crate::limits::BATCH_MAX) requests that all carry
    /// the same map version, and answers each.
    ///
    /// # Cancel safety
    ///
    /// Of a dropped batch some, all or nothing was applied, or is yet to be: drop the link too, and
    /// connect anew in its place. After that nothing more of it is.
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError>;

    /// Gives this life its slots, epoch and timers, once: an armed life stays as it is.
    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError>;

    /// Declares this life quiet at a map version, if every slot of that version is open and no
    /// timer runs. Answers whether it is quiet now.
    async fn settle(&mut self, settle: &Settle) -> Result<bool, ShardError>;

    /// Moves to token epoch `epoch`, if that is greater than the present one.
    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError>;

    /// Who holds `key`, from the record the grant lives by.
    async fn inspect(&mut self, key: &LockKey) -> Result<Option<Inspection>, ShardError>;
}

// Keep both usable as trait objects.
const _: Option<(&dyn Shard, &dyn Link)> = None;

/// The parts of a record, as written by a grant: `nonce|label|offset|te|base|arm|flags`.
///
/// The caller sends the first three; the shard appends the rest, the same for a whole batch. The
/// token is `te`, `base + offset`. `flags` is `0`; read-write and semaphore records will differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) nonce: crate::ids::Nonce,
    pub(crate) label: crate::name::Label,
    pub(crate) token: Token,
    pub(crate) arm: Epoch,
}

impl Record {
    /// Reads a record's text; `None` if it is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let nonce = parts.next()?.parse().ok()?;
        let label = crate::name::Label::new(parts.next()?);
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (offset, te, base, arm) = (number()?, number()?, number()?, number()?);
        let token = Token::new(Epoch(te), base + offset);
        Some(Self {
            nonce,
            label,
            token,
            arm: Epoch(arm),
        })
    }
}
