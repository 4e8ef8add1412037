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
    /// Take it, or extend what this nonce already has to a full lease.
    Acquire {
        /// New for every acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// From when the shard applies it.
        lease: Duration,
        /// Which share of the key it takes.
        mode: LockMode,
        /// How many tokens to set aside for this nonce, at least 1: a process that hands the lock on
        /// among its own tasks gives each the next one.
        tokens: u32,
        /// Queues for the key while another has it. Without one, nothing is left behind.
        ticket: Option<Ticket>,
        /// From the slot's former shard, which answered [`Moving`](Reply::Moving).
        proof: Option<Proof>,
        /// The first token is not below this, which the replicas of a lock agree on. Ignored if it is of another
        /// token epoch than the shard's, or more than [`FLOOR_REACH`](crate::limits::FLOOR_REACH) above its counter.
        floor: Option<Token>,
    },
    /// Extend it; in grace, put it back.
    Renew {
        /// The acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// The grant's token.
        token: Token,
        /// As granted, or [`Read`](LockMode::Read) to keep one share of [`Write`](LockMode::Write): a renewal may lower
        /// the shares of its grant, and never adds any.
        mode: LockMode,
        /// From when the shard applies it.
        lease: Duration,
    },
    /// Agree on the token of a grant that other shards made too: extend it, and make a lower token this one. Every
    /// later token of the shard is above the `tokens` from this one on. Only in an open slot, and not in grace.
    Confirm {
        /// The acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// The token.
        token: Token,
        /// How many tokens are set aside for this nonce from `token` on, at least 1.
        tokens: u32,
        /// From when the shard applies it.
        lease: Duration,
        /// If nobody holds the key here, write the grant. Only while a guard of it lives.
        install: bool,
    },
    /// Release it, or give up waiting for it; the first waiter gets it in the same step.
    Release {
        /// The acquisition.
        nonce: Nonce,
    },
    /// Move it to the slot's next shard, sent by its holder at the former shard.
    Adopt {
        /// The acquisition.
        nonce: Nonce,
        /// For people.
        label: Label,
        /// Its token at the former shard. It tells which of two claims had the key last there.
        own: Token,
        /// The grant's token, which may be that of another shard.
        token: Token,
        /// How many tokens are in use for this nonce from `token` on, at least 1. Every later token of the shard is
        /// above them; the record sets only the first aside.
        tokens: u32,
        /// As in a renewal.
        mode: LockMode,
        /// From when the shard applies it.
        lease: Duration,
        /// Of the move, as the former shard said when it renewed.
        epoch: Epoch,
    },
    /// Remove it from the slot's former shard, sent by its holder at the next shard.
    Remove {
        /// The acquisition.
        nonce: Nonce,
        /// Of the move. In a slot that is not sealed at it nothing is done.
        epoch: Epoch,
    },
}

impl Op {
    /// The lane for it. A [`Release`] may have to follow a renewal instead.
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
    /// Somebody else holds it; or too many shares of it are held, or other clients wait for shares.
    Held {
        /// For at most this long, unless renewed. Of shares: none of the leases ends sooner.
        remaining: Duration,
        /// The holder. Of shares: empty.
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
        /// It had to be put back: the shard had lost it, or had an older grant. Of a confirmation: it was written.
        reclaimed: bool,
        /// Another client waits in the key's queue.
        contended: bool,
        /// The slot is sealed at this epoch: bring the lock along to its next shard.
        moving: Option<Epoch>,
    },
    /// The grant is gone, or was never here; nothing was written.
    Lost,
    /// Brought along, with a full lease. Until this is known, the lock is held at the former shard alone.
    Adopted {
        /// Another client waits in the key's queue.
        contended: bool,
    },
    /// Not brought along: the slot does not come here by that move, or another holds the key. It is held
    /// where it was. Nothing was written.
    NotAdopted,
    /// Answer to a release, and to a removal.
    Released {
        /// Whether there was still a record of this nonce to delete.
        held: bool,
    },
    /// The slot is not here: refresh the map. Nothing was written.
    Moved {
        /// When it left.
        epoch: Epoch,
    },
    /// A namespace was declared since the sender's view: refresh the view, because the key's lock may have several
    /// replicas now. Nothing was written.
    Outdated,
    /// The slot goes elsewhere and is sealed here: queue at its next shard. The request's own ticket is gone.
    /// Of a confirmation: the slot goes elsewhere, or comes here; nothing was written.
    Moving {
        /// Of the move.
        epoch: Epoch,
        /// How many shares of the key are held here, for a [`Proof`]: the number never rises. `None`: not known, or the
        /// key has an exclusive holder.
        left: Option<u32>,
    },
    /// The slot comes from elsewhere, where the key may be held: bring a proof from its former shard.
    /// Nothing but a ticket was written.
    NeedProof {
        /// Of the move.
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
    /// The key is held as a lock of another kind. Nothing was written, and no ticket of this nonce is left.
    OtherKind {
        /// The kind of its holders.
        held: LockKind,
    },
    /// Something that is not a lock lies under the key's name. Nothing was written.
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
