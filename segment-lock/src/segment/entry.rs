//! The record of a request.

use crate::{Account, Amount, HashKey, RequestId, id::digest_of};

/// The decision on a request, and its present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A deposit or a deduction took effect.
    Done,
    /// The whole account had too little at some instant of the request. Nothing was done, or will be.
    Insufficient,
    /// A reservation is held.
    Held {
        /// The amount.
        amount: Amount,
        /// The time at which it comes back by itself, in ms.
        deadline_ms: u64,
    },
    /// A reservation was spent.
    Confirmed,
    /// A reservation was given back, or was cancelled before it came.
    Cancelled,
    /// A reservation came back at its deadline.
    Expired,
    /// A transfer has begun and is not finished.
    Sent {
        /// The amount.
        amount: Amount,
        /// The receiver.
        to: Account,
    },
    /// A transfer arrived.
    Delivered,
    /// A transfer was refused by its destination, and the money is back.
    Returned,
}

impl State {
    /// Whether the state cannot change any more, so that it may be forgotten in time.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Held { .. } | Self::Sent { .. } => false,
            Self::Done
            | Self::Insufficient
            | Self::Confirmed
            | Self::Cancelled
            | Self::Expired
            | Self::Delivered
            | Self::Returned => true,
        }
    }
}

/// A decided request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The digest of the request's content. `None` for a reservation cancelled before it came: if it comes, it reserves
    /// nothing, whatever its content.
    pub content: Option<u64>,
    /// Its present state.
    pub state: State,
}

/// The id of a transfer at its destination: two accounts may use the same request id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreditId {
    // First: they are ordered by time.
    /// The request.
    pub id: RequestId,
    /// The source account.
    pub from: Account,
}

/// The id of a final answer: of a request or of a credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Final {
    /// A request with its home here.
    Request(RequestId),
    /// Another account's transfer.
    Credit(CreditId),
}

impl Final {
    /// The creation time of the request, in ms since 1970.
    pub fn time_ms(&self) -> u64 {
        match self {
            Self::Request(id) | Self::Credit(CreditId { id, .. }) => id.time_ms(),
        }
    }
}

impl CreditId {
    /// 128 bits that are stored in place of both names.
    pub fn digest(&self, key: HashKey) -> u128 {
        digest_of(key, self.id.name(), Some(&self.from))
    }
}

/// The state of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditState {
    /// The money is here. Kept, however old, until the transfer is known to be finished. Without it, a repeat would
    /// tell the source that the transfer was refused.
    Pinned,
    /// The money is here, and the transfer is finished at its source.
    Forgettable,
    /// The money was refused, permanently.
    Refused,
}

/// A decided credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The digest of the transfer.
    pub content: u64,
    /// Its state.
    pub state: CreditState,
}
