//! Operations and their answers, as values.

use std::time::Duration;

use crate::{
    clock::Instant,
    ids::{Epoch, MapVersion, Nonce, Token},
    name::{Label, LockKey},
    shard::{LockKind, LockLane, LockMode},
};

/// One operation on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key.
    pub key: LockKey,
    /// When the shard's slots last changed, by the sender's map. Where it equals the version the
    /// shard is quiet at, the slot's state needs no look.
    pub map: MapVersion,
    /// The version of the topology at which a namespace was last declared, by the sender's view. An acquire with a lower
    /// one than the shard's is [`Outdated`](Reply::Outdated).
    pub declared: MapVersion,
    /// What to do.
    pub op: Op,
}

/// What to do with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Acquire the key. If this nonce holds it already, extend its record to a full lease.
    Acquire {
        /// New for every acquisition.
        nonce: Nonce,
        /// Shown to people.
        label: Label,
        /// Counted from when the shard applies the request.
        lease: Duration,
        /// Exclusive, or the shares requested.
        mode: LockMode,
        /// Goes before waiters that are not preferred. Only for a read-write lock.
        preferred: bool,
        /// How many tokens to set aside for this nonce, at least 1: a process that hands the lock on
        /// among its own tasks gives each the next one.
        tokens: u32,
        /// Queues while another client holds the key. Without a ticket, a refused request leaves nothing at the shard.
        ticket: Option<Ticket>,
        /// From the slot's former shard, which answered [`Moving`](Reply::Moving).
        proof: Option<Proof>,
    },
    /// Extend the record; in grace, write it again if the shard lost it.
    Renew {
        /// The acquisition.
        nonce: Nonce,
        /// Shown to people.
        label: Label,
        /// The grant's token.
        token: Token,
        /// The mode of the grant; or [`Read`](LockMode::Read), to downgrade a [`Write`](LockMode::Write) grant. A renewal
        /// never adds shares.
        mode: LockMode,
        /// Counted from when the shard applies the request.
        lease: Duration,
    },
    /// Agree on the token of a replicated lock: extend the record, and raise a lower token to this one. Every later token
    /// of the key is above the `tokens` from this one on. A share of the nonce is extended, and keeps its token.
    /// Applied only in an open slot, and not in grace.
    Confirm {
        /// The acquisition.
        nonce: Nonce,
        /// Shown to people.
        label: Label,
        /// The token.
        token: Token,
        /// How many tokens are set aside for this nonce from `token` on, at least 1.
        tokens: u32,
        /// Counted from when the shard applies the request.
        lease: Duration,
        /// Write the record if the key has no holder at this shard. Sent only while the lock's guard lives.
        install: bool,
    },
    /// Release the key, or stop waiting for it. In the same step, the first waiter gets the key.
    Release {
        /// The acquisition.
        nonce: Nonce,
    },
    /// Write the record at the slot's next shard. Sent by the holder at the former shard.
    Adopt {
        /// The acquisition.
        nonce: Nonce,
        /// Shown to people.
        label: Label,
        /// Its token at the former shard, which decides between two claims: the higher one held the key last.
        own: Token,
        /// The token of the lock, which may come from another replica.
        token: Token,
        /// How many tokens are in use for this nonce from `token` on, at least 1. Every later token of the key is
        /// above them; the record sets only the first aside.
        tokens: u32,
        /// As in a renewal.
        mode: LockMode,
        /// Counted from when the shard applies the request.
        lease: Duration,
        /// The move's epoch, from the former shard's answer to a renewal.
        epoch: Epoch,
    },
    /// Delete the record at the slot's former shard. Sent by the holder at the next shard.
    Remove {
        /// The acquisition.
        nonce: Nonce,
        /// The move's epoch. Nothing is deleted unless the slot is sealed at this epoch.
        epoch: Epoch,
    },
}

impl Op {
    /// The lane of the operation. A [`Release`] may have to follow a renewal on the other lane.
    pub fn lane(&self) -> LockLane {
        match self {
            Self::Acquire { .. } | Self::Release { .. } => LockLane::Work,
            Self::Renew { .. }
            | Self::Confirm { .. }
            | Self::Adopt { .. }
            | Self::Remove { .. } => LockLane::Renew,
        }
    }
}

/// A request to release a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The key.
    pub key: LockKey,
    /// As in a [`Request`].
    pub map: MapVersion,
    /// As in a [`Request`].
    pub declared: MapVersion,
    /// The acquisition.
    pub nonce: Nonce,
}

impl Request {
    /// Whether the shard applies `next` together with this request, which precedes it.
    pub(crate) fn takes_along(&self, next: &Self) -> bool {
        self.map.takes_along(next.map) && self.declared == next.declared
    }
}

impl From<Release> for Request {
    fn from(release: Release) -> Self {
        let Release {
            key,
            map,
            declared,
            nonce,
        } = release;
        Self {
            key,
            map,
            declared,
            op: Op::Release { nonce },
        }
    }
}

/// A place in a key's queue, first come, first served. It ends
/// [`TICKET_KEEP`](crate::limits::TICKET_KEEP) after the last request that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// A moment before the request left, on the sender's own clock: a [`QueuedGrant`](super::QueuedGrant) echoes the
    /// latest. It means nothing to the shard.
    pub sent: Instant,
    /// How long the grant lasts that the shard makes by itself, when the turn has come.
    pub claim: Duration,
    /// How many callers of the sender wait for it, at least 1: for people.
    pub callers: u32,
}

/// The former shard's answer on the holders of a key in a migrating slot. Valid for this key and this move at any
/// later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Of the move: the former shard sealed the slot at it.
    pub epoch: Epoch,
    /// How many shares the former shard has left, at most, all of the kind that was asked for. An exclusive lock is
    /// granted only at 0.
    pub left: u32,
}

/// The answer to one operation. A refusal is an answer and says what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Acquired, with a full lease; the same tokens again for a repeat.
    Granted {
        /// The first of the tokens: greater than every earlier one of the key.
        token: Token,
        /// How many there are, in a row.
        tokens: u32,
        /// Another client waits in the key's queue.
        contended: bool,
    },
    /// Another client holds the key; or too few shares are free, or earlier requests for shares wait.
    Held {
        /// The rest of the holder's lease. Of shares: the rest of the lease that ends first.
        remaining: Duration,
        /// The holder's label. Of shares: empty.
        label: Label,
        /// The number of tickets ahead of the request's own ticket, at most.
        position: Option<u32>,
    },
    /// Another client holds the key, and its queue is full. No ticket was written.
    TooManyWaiters {
        /// When the queue may have room.
        retry_after: Duration,
    },
    /// Renewed, to a full lease.
    Renewed {
        /// The record was written again: the shard had lost it, or had an older grant. Of a confirmation: it was installed.
        reclaimed: bool,
        /// Another client waits in the key's queue.
        contended: bool,
        /// The slot is sealed at this epoch: the next shard has to adopt the lock.
        moving: Option<Epoch>,
    },
    /// The grant is gone, or was never here; nothing was written.
    Lost,
    /// Adopted, with a full lease. Until the holder receives this answer, it holds the lock at the former shard only.
    Adopted {
        /// Another client waits in the key's queue.
        contended: bool,
    },
    /// Not adopted: the slot does not arrive by that move, or another client holds the key. The lock stays held at the
    /// former shard. Nothing was written.
    NotAdopted,
    /// Answer to a release, and to a removal.
    Released {
        /// Whether there was still a record of this nonce to delete.
        held: bool,
    },
    /// The slot is not here: refresh the map. Nothing was written.
    Moved {
        /// The epoch at which it left.
        epoch: Epoch,
    },
    /// A namespace was declared since the sender's view: refresh the view, because the key's lock may have several
    /// replicas now. Nothing was written.
    Outdated,
    /// The slot is leaving, and sealed: queue at its next shard. The request's own ticket was deleted.
    /// Of a confirmation: the slot is leaving or arriving; nothing was written.
    Moving {
        /// The move's epoch.
        epoch: Epoch,
        /// How many shares of the key are held here, for a [`Proof`]: the number never rises. `None`: not known, or the
        /// key has an exclusive holder.
        left: Option<u32>,
    },
    /// The slot is arriving, and the key may be held at its former shard: send a proof from there. Only a ticket was
    /// written.
    NeedProof {
        /// The move's epoch.
        epoch: Epoch,
    },
    /// The shard restarted, and waits for holders to reclaim their locks. Only a ticket was written.
    Grace {
        /// New grants are made after this.
        retry_after: Duration,
    },
    /// The shard has used up its tokens and waits for a new epoch. Nothing was written.
    NoTokens,
    /// The shard has no memory for new locks; renewals and releases still work. Nothing was written.
    OutOfMemory,
    /// The key is held as a lock of another kind. Nothing was written, and no ticket of this nonce is left.
    OtherKind {
        /// The kind of its holders.
        held: LockKind,
    },
    /// The key's name is in use for a value that is not a lock. Nothing was written.
    Foreign,
}

/// Milliseconds on a shard's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardTime(pub u64);

/// The answers to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// When the shard applied the batch, by its own clock. Known if the batch has a renewal, or if something hung on it.
    pub now: Option<ShardTime>,
    /// Whether the slots needed no look: the shard is quiet at the first request's map version. Says
    /// nothing where the batch has only releases, which look at no slot.
    pub quiet: bool,
    /// The token counter after the batch, if the batch could grant.
    pub counter: u64,
    /// One for each request, in their order.
    pub replies: Vec<Reply>,
}
