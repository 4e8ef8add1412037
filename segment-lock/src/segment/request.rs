//! The requests to a segment.

use std::{collections::BTreeMap, sync::Arc};

use super::{Committed, CreditId, History, State};
use crate::{Account, Amount, Caller, Change, Legs, Reference, RequestId, Terms, Unit};

/// Decides a request at its home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The request.
    pub id: RequestId,
    /// The change.
    pub change: Change,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// Loans to land first.
    pub lands: Vec<Loan>,
    /// Whether the account has a log: if not, a storage needs no name for it.
    pub logged: bool,
    /// The caller's reference, for the log.
    pub reference: Option<Reference>,
    /// The caller.
    pub caller: Caller,
}

/// Sends money to another segment of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lend {
    /// The number of the receiving segment.
    pub to: u32,
    /// The number of the last loan that landed, *as read at the receiver*. That proves that the loan has landed, and may
    /// be overwritten.
    pub landed: u64,
    /// The requested amount. The segment may lend less.
    pub want: Amount,
    /// The caller.
    pub caller: Caller,
}

/// A loan in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The number of the lending segment.
    pub from: u32,
    /// Its number: the lender's version.
    pub seq: u64,
    /// The amount.
    pub amount: Amount,
}

/// Receives a loan. Any caller may send this at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Land {
    /// The loan.
    pub loan: Loan,
    /// The caller.
    pub caller: Caller,
}

/// Reads the segment's money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// The newest layout the caller knows.
    pub generation: u64,
    /// Freezes the segment: no other caller may move its money for a moment.
    pub freeze: Option<Freeze>,
}

/// A request for a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The caller that owns it.
    pub caller: Caller,
    /// Its length in ms; at most [`FREEZE_MS_MAX`](crate::limits::FREEZE_MS_MAX).
    pub for_ms: u64,
}

/// Ends the caller's freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thaw {
    /// The caller that owns it.
    pub caller: Caller,
}

/// Records that the whole account has too little for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// The request.
    pub id: RequestId,
    /// The change.
    pub change: Change,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The segment's version at the caller's first read.
    pub version: u64,
    /// The caller.
    pub caller: Caller,
}

/// Spends a reservation, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The reservation.
    pub id: RequestId,
    /// The amount to spend; the rest comes back. `None`: all of it.
    pub amount: Option<Amount>,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Decides to pay accounts from a reservation, once each of them has promised to receive its leg. The rest comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The reservation.
    pub id: RequestId,
    /// The id by which the accounts know their legs.
    pub capture: RequestId,
    /// The amounts, and the receivers.
    pub legs: Legs,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Gives back the money of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The reservation.
    pub id: RequestId,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Expires reservations past their deadline, a bounded number per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expire;

/// Receives another account's transfer, or promises to, at the id's home in this account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveCredit {
    /// The request, and its account.
    pub id: CreditId,
    /// The digest of the transfer.
    pub content: u64,
    /// The amount.
    pub amount: Amount,
    /// The unit of the source.
    pub unit: Unit,
    /// Only keeps room for the money, until the source has decided.
    pub is_promise: bool,
    /// The newest layout of this account that the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// The destination's answer to a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the money.
    Credited,
    /// It will never have it.
    Refused,
}

/// Reports the destinations' answers to the source of a transfer or a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishTransfer {
    /// The transfer, or the reservation.
    pub id: RequestId,
    /// The destinations that refused. All others have their money.
    pub refused: Vec<Account>,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Unpins a credit, or takes a promise back, once the transfer is finished at its source or will never be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forget {
    /// The credit.
    pub id: CreditId,
    /// The newest layout the caller knows.
    pub generation: u64,
}

/// Looks up a decision. Decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// The request.
    pub id: RequestId,
    /// The newest layout the caller knows.
    pub generation: u64,
}

/// Lists transfers and captures that are not finished, oldest first, a bounded number per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Start after this one.
    pub after: Option<RequestId>,
}

/// Lists credits that are promised or pinned, oldest first, a bounded number per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Start after this one.
    pub after: Option<CreditId>,
}

/// Drops a bounded number of final answers that may be forgotten now. The mark rises to their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge;

/// Prepares the segment for a planned layout: from then on it takes no new ids from callers that know an older layout
/// only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The plan's generation.
    pub generation: u64,
    /// The generation in force.
    pub base: u64,
    /// The time at which the plan begins, in ms.
    pub from_ms: u64,
    /// Whether the account is closed.
    pub closed: bool,
    /// Ids of this time and before are refused as too old, unless they are recorded: they may have had another home by
    /// a lost layout. 0: no such layout.
    pub mark_ms: u64,
    /// The account's manifest with this plan, [as text](crate::Manifest::encode). The segment keeps it as a copy.
    pub manifest: Arc<str>,
}

/// Creates the segment for a planned layout; if it exists already, prepares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// The plan.
    pub prepare: Prepare,
    /// The account's terms.
    pub terms: Terms,
    /// The part of the account's credit line that the segment has from its beginning on.
    pub credit: i64,
    /// The time of the plan, in ms since 1970. Long after it no segment is made: by then the account may be deleted.
    pub planned_ms: u64,
}

/// Creates an empty segment in place of a lost one, in doubt until it is accepted. A segment that exists stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// The layout by which the lost segment was a home.
    pub create: Create,
    /// How often the lost segment may have lost changes before, as far as known.
    pub losses: u64,
    /// The caller's time, in ms since 1970.
    pub at_ms: u64,
}

/// Takes no new money from now on, permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close;

/// Removes the segment of a deleted account with all its records, if it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// The greatest generation of the deleted account. A segment of a later account of that name has a greater one.
    pub generation: u64,
    /// The part of the account's credit line that the segment must have.
    pub credit: i64,
    /// A later account of that name refuses ids of this time and before, in ms.
    pub mark_ms: u64,
    /// The time of the account's last plan, in ms since 1970.
    pub planned_ms: u64,
}

/// Reads the segment's money even if it is doubtful. For operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspect;

/// An operator accepts a doubtful segment as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The version of the segment, as read. A doubtful segment with another version is not the one that was read: it is
    /// left as it is, and the answer is [`Reply::Stale`](super::Reply::Stale).
    pub version: u64,
    /// The version of each other segment, read when the segment existed: no loan of before has a greater number.
    pub others: BTreeMap<u32, u64>,
    /// The layout in force. A segment that came back from an earlier time is prepared for it.
    pub in_force: Prepare,
    /// The caller's time, in ms since 1970.
    pub at_ms: u64,
}

/// Reads the copy of the account's manifest, doubtful or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCopy;

/// A request to one segment. Those that are large and rare are boxed: every request is moved some times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is documented as the structure it carries"
)]
pub enum Request {
    Op(Op),
    Lend(Lend),
    Land(Land),
    Collect(Collect),
    Thaw(Thaw),
    Refuse(Refuse),
    Confirm(Confirm),
    Cancel(Cancel),
    Capture(Box<Capture>),
    Expire(Expire),
    Credit(Box<GiveCredit>),
    FinishTransfer(FinishTransfer),
    Forget(Forget),
    Find(Find),
    History(History),
    Sent(Sent),
    Pinned(Pinned),
    Purge(Purge),
    Create(Box<Create>),
    Replace(Box<Replace>),
    Prepare(Prepare),
    Close(Close),
    Remove(Remove),
    Inspect(Inspect),
    Accept(Box<Accept>),
    ReadCopy(ReadCopy),
}

macro_rules! from {
    ($($variant:ident: $structure:ident $(in $boxed:ident)?,)*) => { $(
        impl From<$structure> for Request {
            fn from(request: $structure) -> Self {
                Self::$variant($($boxed::new)?(request))
            }
        }
    )* };
}

from! {
    Op: Op,
    Lend: Lend,
    Land: Land,
    Collect: Collect,
    Thaw: Thaw,
    Refuse: Refuse,
    Confirm: Confirm,
    Cancel: Cancel,
    Capture: Capture in Box,
    Expire: Expire,
    Credit: GiveCredit in Box,
    FinishTransfer: FinishTransfer,
    Forget: Forget,
    Find: Find,
    History: History,
    Sent: Sent,
    Pinned: Pinned,
    Purge: Purge,
    Create: Create in Box,
    Replace: Replace in Box,
    Prepare: Prepare,
    Close: Close,
    Remove: Remove,
    Inspect: Inspect,
    Accept: Accept in Box,
    ReadCopy: ReadCopy,
}

impl Op {
    /// The state that is recorded on success.
    pub(super) fn state(&self) -> State {
        match &self.change {
            Change::Deposit { .. } | Change::Deduct { .. } => State::Done,
            Change::Reserve {
                amount,
                deadline_ms,
            } => State::Held {
                amount: *amount,
                deadline_ms: *deadline_ms,
            },
            Change::Transfer { amount, to } => State::Sent {
                amount: *amount,
                to: Account::clone(to),
            },
            Change::TransferLegs { legs } => State::Committed(Box::new(Committed {
                legs: legs.clone(),
                capture: None,
            })),
        }
    }
}
