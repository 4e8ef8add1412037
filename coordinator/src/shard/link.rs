//! Connections to a shard, one trait for each purpose.

use std::fmt;

use async_trait::async_trait;

use super::{
    Answers, Control, ControlReply, CounterAnswers, CounterRequest, Request, ShardError,
    Subscription,
};
use crate::ids::{ClientId, Life};

/// The purpose of a connection. Requests never wait behind requests of another purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// As [`LockLane::Work`].
    Work,
    /// As [`LockLane::Renew`].
    Renew,
    /// Requests about counters.
    Counters,
    /// Rare requests: arming, marking quiet, inspection, migration.
    Control,
}

/// A lane for requests about locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockLane {
    /// Acquires, and releases that need not follow a renewal.
    Work,
    /// Renewals, and requests that must follow one.
    Renew,
}

impl Lane {
    /// The word in the connection's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Renew => "renew",
            Self::Counters => "counters",
            Self::Control => "control",
        }
    }
}

impl From<LockLane> for Lane {
    fn from(lane: LockLane) -> Self {
        match lane {
            LockLane::Work => Self::Work,
            LockLane::Renew => Self::Renew,
        }
    }
}

/// The number that a shard gives to a connection. With it a later connection ends this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// A shard that accepts connections.
///
/// # Contract
///
/// * Every implementation passes `shard_conformance!` of `ringfence-conformance`.
/// * Each method opens one physical connection and reads the shard's life over it. No [`Link`] reconnects by itself. Only
///   links for rare requests may share a connection, and end together: if one is `former`, or a request of one fails.
/// * If `former` is a connection in the same life, it is ended before the new one is returned: none of its requests
///   takes effect later.
/// * There are no default methods: a wrapper that forgets one must not compile.
///
/// # Cancel safety
///
/// Dropping a future closes the connection that it was opening.
#[async_trait]
pub trait Shard: fmt::Debug + Send + Sync + 'static {
    /// How many connections share the requests of [`LockLane::Work`], by slot: from 1 to
    /// [`LANES_BY_SLOT`](crate::limits::LANES_BY_SLOT).
    fn work_lanes(&self) -> usize;

    /// Opens a connection for requests about locks.
    async fn connect_locks(
        &self,
        lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError>;

    /// Opens a connection for requests about counters.
    async fn connect_counters(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError>;

    /// Opens a connection for control of the shard, for looks at its locks, and for movers.
    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError>;

    /// Opens the connection over which the shard sends messages about the nonces of `client`: grants to them, and
    /// requests for their keys.
    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError>;
}

/// One connection to a shard, in one life of the shard.
///
/// # Contract
///
/// * No answer comes from another life: [`ShardError::Unarmed`] instead, and nothing is written.
/// * Each request may be repeated.
/// * After an error that [ends the link](ShardError::ends_link), drop the link and connect anew.
///
/// # Cancel safety
///
/// A dropped request was applied, in whole or in part, or not, or it is applied later. Drop the link too, and connect
/// anew in its place: after that no request of it is applied.
#[async_trait]
pub trait Link: fmt::Debug + Send {
    /// The life of the shard that this connection reads and writes.
    fn life(&self) -> &Life;

    /// The id by which the next connection ends this one.
    fn connection(&self) -> ConnectionId;

    /// Waits until the connection is seen to have ended. This may never happen: a peer that vanished sends nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    async fn ended(&mut self);
}

/// A connection for requests about locks.
///
/// # Contract
///
/// * A batch is applied in order, each operation atomically. Batches do not interleave within one operation. The shard
///   answers every operation of a batch, or none.
/// * A repeated acquire by the same nonce gets the same token and a full lease again. A second release finds nothing.
/// * A grant requires: this life is armed; its grace is over; the key's slot is open, or arrives and the key is
///   [free](super::Mode::Import); no other nonce has a live record; and, for a newcomer, there is no live ticket. The
///   record is written together with its expiry, in one step.
/// * In a slot that arrives, a key is free if a request ever had a proof of this move for it, or if the list is
///   complete and does not contain the key. A sealed slot grants nothing: it only shrinks.
/// * A waiter at a slot's former shard queues again at the next shard, in the order in which it gets there.
/// * A key has one queue of tickets, in order of arrival. A request that finds the key without a holder (an acquire before
///   all else, a release and a lost renewal after all else) grants the key to the first live ticket, for its claim, and
///   notifies the client of that nonce; not in grace, and not in a slot that is not open. It sends one message for any
///   number of waiters. A queue is a hint: it may vanish, and proves nothing.
/// * A holder learns that its key is contended: by a message when another client's ticket is new, unless the grant said so
///   already, and each time a ticket is sent again; and by the answers to its own requests.
/// * Tokens of a key rise strictly, across lives, as long as every arming has a fresh epoch. No two grants of a shard have the
///   same.
#[async_trait]
pub trait LockLink: Link {
    /// Applies `batch`, of at most [`BATCH_MAX`](crate::limits::BATCH_MAX) requests, and answers each.
    ///
    /// Requests with the same map version should be adjacent, and requests without one should follow these: each such run
    /// is applied by itself.
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError>;
}

/// A connection for requests about counters.
///
/// # Contract
///
/// * A request is applied only where the key's slot is open, or where the slot arrives and its counters are here.
///   Grace does not matter.
/// * A counter is in one place.
#[async_trait]
pub trait CounterLink: Link {
    /// Applies `batch`, of at most [`BATCH_MAX`](crate::limits::BATCH_MAX) requests, run by run as
    /// [`LockLink::call`] does, each request in one atomic step and in their order. Answers each once its change is as
    /// durable as its account requires.
    async fn call(&mut self, batch: &[CounterRequest]) -> Result<CounterAnswers, ShardError>;
}

/// A connection for control of the shard, for looks at its locks, and for movers: these change slots, and move their
/// content. The methods of `dyn ControlLink` are the [requests](Control) by their names.
///
/// # Contract
///
/// A step that moves a counter may be repeated, and has no effect if it comes late. A change that was made to a counter at
/// the later shard is never undone by the earlier shard.
#[async_trait]
pub trait ControlLink: Link {
    /// Does what `control` asks for. The reply has its name.
    async fn call(&mut self, control: Control) -> Result<ControlReply, ShardError>;
}
