//! The record of a request.

use crate::{Account, Amount, HashKey, Legs, RequestId, id::digest_of};

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
    /// The money goes to several accounts, which have promised to receive it. Not finished.
    Committed(Box<Committed>),
    /// A transfer arrived.
    Delivered,
    /// A transfer was refused by its destination, and the money is back.
    Returned,
}

impl State {
    /// Whether the state cannot change any more, so that it may be forgotten in time.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Held { .. } | Self::Sent { .. } | Self::Committed(_) => false,
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

/// A decision to pay several accounts, which stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The amounts, and the receivers.
    pub legs: Legs,
    /// The id of the capture, by which the receivers know it. `None` for a transfer: they know that by its own id.
    pub capture: Option<RequestId>,
}

impl Committed {
    /// The state once the answers of the receivers are known. `refused`: the sum of the legs that came back.
    pub(super) fn end(&self, refused: i64) -> State {
        let is_back = refused == self.legs.sum().get();
        match (&self.capture, is_back) {
            (None, false) => State::Delivered,
            (None, true) => State::Returned,
            (Some(_), false) => State::Confirmed,
            (Some(_), true) => State::Cancelled,
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
    /// The reservation there, if the request is a capture of one.
    pub reservation: Option<RequestId>,
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
    /// The id by which the source knows the transfer: its own, or that of the reservation.
    pub fn at_source(&self) -> &RequestId {
        self.reservation.as_ref().unwrap_or(&self.id)
    }

    /// 128 bits that are stored in place of both names.
    pub fn digest(&self, key: HashKey) -> u128 {
        let credit = (&self.from, self.reservation.as_ref());
        digest_of(key, self.id.name(), Some(credit))
    }
}

/// The state of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditState {
    /// There is room for the money, which is to come if the source decides so. Kept like one that is pinned.
    Promised {
        /// The amount.
        amount: Amount,
        /// When it was promised last, in ms since 1970 on the segment's clock.
        at_ms: u64,
    },
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
