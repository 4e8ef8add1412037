//! What a segment remembers of a request.

use crate::{Account, Amount, RequestId, id::digest_of};

/// What was decided, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A deposit or a deduction took effect.
    Done,
    /// The whole was short at some instant of the request. Nothing was done, or ever will be.
    Insufficient,
    /// A reservation is held.
    Held {
        /// How much.
        amount: Amount,
        /// When it comes back by itself, in ms.
        deadline_ms: u64,
    },
    /// A reservation was spent.
    Confirmed,
    /// A reservation was given back, or was cancelled before it came.
    Cancelled,
    /// A reservation came back at its deadline.
    Expired,
    /// A transfer is under way: the money is neither here nor there until it is finished.
    Sent {
        /// How much.
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
    /// Whether nothing can change it any more, so that it may be forgotten in time.
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
    /// The digest of the request's content. None for a reservation cancelled before it came: when
    /// it comes, it gets nothing, for any content.
    pub content: Option<u64>,
    /// What became of it.
    pub state: State,
}

/// A transfer, as its destination knows it: two accounts may use the same request id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreditId {
    // First: they are ordered by time.
    /// The request.
    pub id: RequestId,
    /// The account it takes the money from.
    pub from: Account,
}

/// A final answer, by the request or the credit that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Final {
    /// Of a request at home here.
    Request(RequestId),
    /// Of another account's transfer.
    Credit(CreditId),
}

impl Final {
    /// When the request was created, in ms since 1970.
    pub fn time_ms(&self) -> u64 {
        match self {
            Self::Request(id) | Self::Credit(CreditId { id, .. }) => id.time_ms(),
        }
    }
}

impl CreditId {
    /// 128 bits that stand for both names where the answer is stored: XXH3-128 with [`HASH_SEED`](crate::HASH_SEED) + 2
    /// over `length of the request's name, u8 || that name || the account's`.
    pub fn digest(&self) -> u128 {
        digest_of(self.id.name(), Some(&self.from))
    }
}

/// What became of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditState {
    /// The money is here. Kept, however old, until the transfer is known to be finished: if it were
    /// forgotten before, the source would be told that the transfer was refused.
    Pinned,
    /// The money is here, and the transfer is finished at its source.
    Forgettable,
    /// The money never came, and never will.
    Refused,
}

/// A decided credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The digest of the transfer.
    pub content: u64,
    /// What became of it.
    pub state: CreditState,
}
