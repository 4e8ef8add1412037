//! What a segment can be asked.

use std::{collections::BTreeMap, sync::Arc};

use super::{CreditId, State};
use crate::{Account, Amount, Caller, Change, RequestId, Terms};

/// Decides a request at its home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The request.
    pub id: RequestId,
    /// What it asks for.
    pub change: Change,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// Loans to land first.
    pub lands: Vec<Loan>,
    /// The caller.
    pub caller: Caller,
}

/// Sends money to another segment of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lend {
    /// To which segment.
    pub to: u32,
    /// The number of the loan: one more than the last that landed, *as read at the receiver*. That
    /// is the proof that the one before has landed, and may be overwritten.
    pub seq: u64,
    /// How much is wanted; less may be lent.
    pub want: Amount,
    /// The caller.
    pub caller: Caller,
}

/// A loan on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// From which segment.
    pub from: u32,
    /// Its number, counted by lender and receiver.
    pub seq: u64,
    /// How much it is.
    pub amount: Amount,
}

/// Receives a loan. Anyone may, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Land {
    /// Which.
    pub loan: Loan,
    /// The caller.
    pub caller: Caller,
}

/// Reads the segment's money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// The newest layout the caller knows.
    pub generation: u64,
    /// Nobody else is to move money here for a moment.
    pub freeze: Option<Freeze>,
}

/// Asks for a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The caller that froze it.
    pub caller: Caller,
    /// For how long, in ms; at most [`FREEZE_MS_MAX`](crate::limits::FREEZE_MS_MAX).
    pub for_ms: u64,
}

/// Ends the caller's freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thaw {
    /// Whose.
    pub caller: Caller,
}

/// Records that the whole is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// The request.
    pub id: RequestId,
    /// What it asks for.
    pub change: Change,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The segment's version when the caller first read.
    pub version: u64,
    /// The caller.
    pub caller: Caller,
}

/// Spends a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The reservation.
    pub id: RequestId,
    /// The newest layout the caller knows.
    pub generation: u64,
}

/// Gives a reservation's money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The reservation.
    pub id: RequestId,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Expires reservations past their deadline, a bounded number per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expire;

/// Receives another account's transfer, at the id's home in this account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveCredit {
    /// The request, and its account.
    pub id: CreditId,
    /// The digest of the transfer.
    pub content: u64,
    /// How much.
    pub amount: Amount,
    /// The newest layout of this account that the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// What the destination said to a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the money.
    Credited,
    /// It never will.
    Refused,
}

/// Tells a transfer's source what the destination said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishTransfer {
    /// The transfer.
    pub id: RequestId,
    /// What the destination said.
    pub outcome: Outcome,
    /// The newest layout the caller knows.
    pub generation: u64,
    /// The caller.
    pub caller: Caller,
}

/// Unpins a credit, once the transfer is finished at its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forget {
    /// Which.
    pub id: CreditId,
    /// The newest layout the caller knows.
    pub generation: u64,
}

/// Looks up what was decided, and decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// The request.
    pub id: RequestId,
    /// The newest layout the caller knows.
    pub generation: u64,
}

/// Lists transfers that are sent and not finished, oldest first, a bounded number a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Go on after this one.
    pub after: Option<RequestId>,
}

/// Lists credits that are pinned, oldest first, a bounded number a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Go on after this one.
    pub after: Option<CreditId>,
}

/// Raises the mark to what may be forgotten by now, and drops a bounded number of final entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge;

/// Prepares for a planned layout: from then on, callers of an older one get no new ids in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The plan's generation.
    pub generation: u64,
    /// The generation in force.
    pub base: u64,
    /// When the plan begins, in ms.
    pub from_ms: u64,
    /// Whether the account is closed.
    pub closed: bool,
    /// Ids of this time and before are too old if they are not recorded: a layout that was lost may have homed them
    /// elsewhere. 0: no such layout.
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
}

/// The last numbers of the loans between a lost segment and another one, as the other one knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Of the last loan to the lost segment.
    pub lent: u64,
    /// Of the last loan from the lost segment that landed.
    pub landed: u64,
}

/// Creates a segment in the place of one that is lost, with nothing in it. Leaves a segment that exists as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// The layout that the lost segment was a home by.
    pub create: Create,
    /// The loans between it and each other segment, read after it was lost.
    pub numbers: BTreeMap<u32, Numbers>,
    /// Other segments that are lost and not replaced yet: the numbers of those loans are not known.
    pub lost: Vec<u32>,
    /// How often the lost segment may have lost changes before, as far as that is known.
    pub losses: u64,
}

/// Lets no new money in, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close;

/// Reads the segment's money even if that is doubtful: for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspect;

/// A person takes a doubtful segment for what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The layout in force: a segment that came back from before it is prepared for it.
    pub in_force: Prepare,
}

/// Reads the copy of the account's manifest, doubtful or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCopy;

/// A request to one segment.
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
    Expire(Expire),
    Credit(GiveCredit),
    FinishTransfer(FinishTransfer),
    Forget(Forget),
    Find(Find),
    Sent(Sent),
    Pinned(Pinned),
    Purge(Purge),
    Create(Create),
    Replace(Replace),
    Prepare(Prepare),
    Close(Close),
    Inspect(Inspect),
    Accept(Accept),
    ReadCopy(ReadCopy),
}

macro_rules! from {
    ($($variant:ident: $structure:ident,)*) => { $(
        impl From<$structure> for Request {
            fn from(request: $structure) -> Self {
                Self::$variant(request)
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
    Expire: Expire,
    Credit: GiveCredit,
    FinishTransfer: FinishTransfer,
    Forget: Forget,
    Find: Find,
    Sent: Sent,
    Pinned: Pinned,
    Purge: Purge,
    Create: Create,
    Replace: Replace,
    Prepare: Prepare,
    Close: Close,
    Inspect: Inspect,
    Accept: Accept,
    ReadCopy: ReadCopy,
}

impl Op {
    /// The state that is recorded if it succeeds.
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
        }
    }
}
