//! Operations and their answers, as values.

use std::time::Duration;

use crate::{
    clock::Instant,
    ids::{Epoch, MapVersion, Nonce, Token},
    name::{Label, LockKey},
};

/// One operation on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key.
    pub key: LockKey,
    /// When the shard's slots last changed, by the sender's map. Where it equals the version the
    /// shard is quiet at, the slot's state needs no look.
    pub map: MapVersion,
    /// What to do.
    pub op: Op,
}

/// What to do with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Take it, or extend what this nonce already has to a full lease.
    Acquire {
        /// New for every acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// From when the shard applies it.
        lease: Duration,
        /// How many tokens to set aside for this nonce, at least 1: a process that hands the lock on
        /// among its own tasks gives each the next one.
        tokens: u32,
        /// Queues for the key while another has it. Without one, nothing is left behind.
        ticket: Option<Ticket>,
    },
    /// Extend it; in grace, put it back.
    Renew {
        /// The acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// The grant's token.
        token: Token,
        /// From when the shard applies it.
        lease: Duration,
    },
    /// Give it back, or give up waiting for it; whoever waits longest gets it in the same step.
    Release {
        /// The acquisition.
        nonce: Nonce,
    },
}

/// A place in a key's queue, first come, first served. It ends
/// [`TICKET_KEEP`](crate::limits::TICKET_KEEP) after the last request that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// A moment before the request left, on the sender's own clock: a [`Turn`](super::Turn) echoes the
    /// latest. It means nothing to the shard.
    pub sent: Instant,
    /// How long the grant lasts that the shard makes by itself, when the turn has come.
    pub claim: Duration,
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
        /// Somebody waits in the key's queue.
        wanted: bool,
    },
    /// Somebody else holds it.
    Held {
        /// For at most this long, unless renewed.
        remaining: Duration,
        /// The holder.
        label: Label,
        /// How many tickets are before the one that was sent, at most.
        position: Option<u32>,
    },
    /// Somebody else holds it, and as many wait as may. No ticket was written.
    TooManyWaiters {
        /// When a place may be free.
        retry_after: Duration,
    },
    /// Renewed, to a full lease.
    Renewed {
        /// It had to be put back: the shard had lost it, or had an older grant.
        reclaimed: bool,
        /// Somebody waits in the key's queue.
        wanted: bool,
    },
    /// The grant is gone; nothing was written.
    Lost,
    /// Answer to a release.
    Released {
        /// Whether there was still a record of this nonce to delete.
        held: bool,
    },
    /// The slot is not here: refresh the map. Nothing was written.
    Moved {
        /// When it left.
        epoch: Epoch,
    },
    /// The shard came back and waits for holders to reclaim. Nothing but a ticket was written.
    Grace {
        /// New grants are made after this.
        retry_after: Duration,
    },
    /// The shard has used up its tokens and waits for a new epoch. Nothing was written.
    NoTokens,
    /// The shard has no memory for new locks; renewals and releases still work. Nothing was written.
    OutOfMemory,
    /// Something that is not a lock lies under the key's name. Nothing was written.
    Foreign,
}

/// Milliseconds on a shard's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardTime(pub u64);

/// The answers to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// When the shard applied the batch, by its own clock.
    pub now: ShardTime,
    /// Whether the slots needed no look: the shard is quiet at the batch's map version. Says
    /// nothing where the batch has only releases, which look at no slot.
    pub quiet: bool,
    /// The token counter after the batch, if the batch could grant.
    pub counter: u64,
    /// One for each request, in their order.
    pub replies: Vec<Reply>,
}
