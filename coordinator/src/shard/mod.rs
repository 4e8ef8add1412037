//! The contract between the engine and whatever remembers who holds what.
//!
//! A [`Shard`] is a place that can be connected to; a [`Link`] is one connection, in one life of
//! the shard. Batches of operations go in, as many answers come out.

mod carry;
mod control;
mod counters;
mod decommission;
mod error;
mod inspect;
mod migration;
mod op;
mod slots;
mod wake;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod redis;
pub mod stored;

use std::fmt;

use async_trait::async_trait;
use ringfence_ring::Slot;

pub use carry::{
    Admit, Arrival, Arrive, AskGroups, Block, CopyIn, CopyOf, CopyOut, DropGroups, Dropped,
    Excerpt, Group, Groups, Piece, PutAside, Row, Stamp, When,
};
pub use control::{Arm, ArmAnswer, Armed, Grace, Settle};
pub use counters::{CounterAnswers, CounterOp, CounterReply, CounterRequest};
pub use decommission::{ForceOpen, ForcedOpen};
pub use error::{Effect, ShardError};
pub use inspect::{Cursor, HeldLock, Holder, Inspection, List, LockPage, QueuedWaiter};
pub use migration::{HeldStill, Left, Listing, Scan, ScanPage, Step, Stepped, StillHeld, Waits};
pub use op::{Answers, Op, Proof, Reply, Request, ShardTime, Ticket, Waited};
pub use slots::{Mode, SlotState, SlotStates};
pub use wake::{QueuedGrant, Wake, Wakes};

use crate::ids::{ClientId, Epoch, Incarnation, Life, Token};
use crate::name::LockKey;

/// What a connection is for. Work never waits behind work of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Acquires and releases.
    Work,
    /// Renewals, and releases that must not overtake one.
    Renew,
    /// What is asked of counters.
    Counters,
    /// Everything rare: arming, settling, looking.
    Control,
}

impl Lane {
    /// The word in a connection's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Renew => "renew",
            Self::Counters => "counters",
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

    /// Opens the connection on which `client` is told what its nonces are granted and asked for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    async fn listen(&self, client: ClientId) -> Result<Box<dyn Wakes>, ShardError>;
}

/// One connection to a shard, in one life of it.
///
/// # Contract
///
/// * A batch is applied in order, each operation atomically; no two batches interleave within one
///   operation. Either every operation is answered or none is.
/// * Each operation may be repeated: an acquire by the same nonce finds the same token and a full
///   lease again; a second release finds nothing to do.
/// * A grant needs: this life is armed; its grace is over; the key's slot is open, or comes here and the
///   key is [free](Mode::Import); no live record of another nonce; and, for a newcomer, no live ticket. Its
///   record is written with its end, in one step.
/// * In a slot that comes here a key is free if a request ever brought a proof of this move for it; or if
///   the list is complete and does not name it. A sealed slot grants nothing, to nobody: it only shrinks.
/// * Who waited at a slot's former shard goes before all who came to the next by themselves: who was first
///   there and brings the proof, then those whom the list carries. While others wait there still, and the list is
///   not complete, a proof frees the key for none but these.
/// * A key has one queue of tickets, in the order they came. Whoever finds a key that nobody holds
///   (acquire before all else, release and a lost renewal after all else) grants it to the first live
///   ticket, for its claim, and tells that nonce's client; not in grace, not in a slot that is not open.
///   One message, however many wait. A queue is a hint: it may vanish, and is evidence of nothing.
/// * Whoever holds a key is told that it is wanted: by a message when another's ticket is new, unless its
///   grant said so already, and whenever one is sent again; and by the answers to its own requests.
/// * Tokens of a shard rise strictly, across keys and lives, as long as every arming has a fresh
///   epoch.
/// * A counter is in one place: whatever moves it may be repeated, and comes late without effect; what was made of it
///   at the later place is never undone by the earlier.
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

    /// Applies `batch`, of at most [`BATCH_MAX`](crate::limits::BATCH_MAX) requests, and answers each. Those that carry
    /// the same map version had better follow each other, and those that carry none these: each such run is applied by
    /// itself.
    ///
    /// # Cancel safety
    ///
    /// Of a dropped batch some, all or nothing was applied, or is yet to be: drop the link too, and
    /// connect anew in its place. After that nothing more of it is.
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError>;

    /// Applies `batch`, of at most [`BATCH_MAX`](crate::limits::BATCH_MAX) requests, run by run as in
    /// [`call`](Self::call), each in one atomic step and in their order, and answers each once its change is
    /// as durable as its account asks for. Only where a key's slot is open, or comes here and its counters
    /// have; timers do not matter, but for slots that were opened by force.
    ///
    /// # Cancel safety
    ///
    /// As for [`call`](Self::call).
    async fn call_counters(
        &mut self,
        batch: &[CounterRequest],
    ) -> Result<CounterAnswers, ShardError>;

    /// Gives this life its slots, epoch and timers.
    ///
    /// A life that is armed with the same or a later epoch stays as it is. One that is armed with an earlier epoch is
    /// armed anew: all of its content is replaced and its grace begins again in full; no timer is cut short and no
    /// token repeats. It stays as it is if it has seen a later record than the one of `arm`: a step of that may have
    /// changed a slot.
    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError>;

    /// The state of this life; `None` if it has none.
    async fn armed(&mut self) -> Result<Option<Armed>, ShardError>;

    /// Declares this life quiet at a map version, if every slot of that version is open and no
    /// timer runs; one that is quiet at a later version stays so. Answers whether it is quiet now at this one.
    async fn settle(&mut self, settle: &Settle) -> Result<bool, ShardError>;

    /// Moves to token epoch `epoch`, if that is greater than the present one.
    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError>;

    /// Changes the mode of slots, and keeps the topology that says so.
    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError>;

    /// A page of what is left in slots that are sealed, found by looking at about
    /// [`SCAN_PAGE`](crate::limits::SCAN_PAGE) records.
    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError>;

    /// Tells what is left in the slots' former shard, about
    /// [`SCAN_PAGE`](crate::limits::SCAN_PAGE) keys at a time. Answers the slots that are refused: they
    /// do not come here by that move.
    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError>;

    /// What of `still` is held.
    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError>;

    /// Some of the groups that are left in slots that leave, or are to leave. No grace matters.
    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError>;

    /// A piece of a group that leaves; `None` if it is not there any more, or its slot does not leave by that move.
    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError>;

    /// Puts a piece of a group aside. Answers whether its slot comes here by that move: else nothing was done.
    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError>;

    /// Makes a group of what was put aside.
    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError>;

    /// Drops groups that are where their slots go.
    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError>;

    /// Serves the counters of slots that still come. Answers the slots that are refused: they do not come here by that
    /// move.
    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError>;

    /// Opens slots of a shard that was given up for dead, after a time in which nobody has them.
    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError>;

    /// Who holds `key`, and who waits for it.
    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError>;

    /// A page of the locks that are held, found by looking at about
    /// [`LIST_PAGE`](crate::limits::LIST_PAGE) records, however many there are. Page by page, a lock that
    /// is held throughout is listed; one may be listed twice.
    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError>;
}

// Keep them usable as trait objects.
const _: Option<(&dyn Shard, &dyn Link)> = None;

/// The parts of a record, as written by a grant: `nonce|label|offset|tokens|te|base|arm|flags`.
///
/// The caller sends the first four; the shard appends the rest, the same for a whole batch. The
/// tokens are `te`, `base + offset` and those that follow. `flags` is `1` where the grant told its holder
/// that somebody waits, else `0`; read-write and semaphore records will differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) nonce: crate::ids::Nonce,
    pub(crate) label: crate::name::Label,
    pub(crate) token: Token,
    pub(crate) tokens: u32,
    pub(crate) arm: Epoch,
    /// Whether its holder was told by the grant that somebody waits.
    pub(crate) told: bool,
}

impl Record {
    /// Reads a record's text; `None` if it is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let nonce = parts.next()?.parse().ok()?;
        let label = crate::name::Label::new(parts.next()?);
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (offset, tokens) = (number()?, number()?);
        let (te, base, arm) = (number()?, number()?, number()?);
        Some(Self {
            nonce,
            label,
            token: Token::new(Epoch(te), base + offset),
            tokens: tokens as u32,
            arm: Epoch(arm),
            told: number()? == 1,
        })
    }
}
