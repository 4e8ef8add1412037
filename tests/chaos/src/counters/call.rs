//! Requests about accounts, and their answers, in the form of a log.

use serde::{Deserialize, Serialize};

use super::LatchCall;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A change, for the first time or again.
    Change(Order),
    /// A reservation is to be spent.
    Confirm(Order),
    /// A reservation is to be given back.
    Cancel(Order),
    /// What was decided on an order is asked for.
    Find(Order),
    /// The exact balance of an account.
    Exact(usize),
    /// The fast balance of an account.
    Fast(usize),
    /// The log of an account.
    History(usize),
    /// Something about a latch.
    Latch(LatchCall),
}

impl Call {
    /// The order that it is about, if it is about one.
    pub fn order(&self) -> Option<&Order> {
        match self {
            Self::Change(order)
            | Self::Confirm(order)
            | Self::Cancel(order)
            | Self::Find(order) => Some(order),
            Self::Exact(_) | Self::Fast(_) | Self::History(_) | Self::Latch(_) => None,
        }
    }

    /// Whether it is about a reservation.
    pub fn is_of_reservation(&self) -> bool {
        self.order().is_some_and(Order::is_reservation)
    }
}

/// A change under its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Number of the account.
    pub account: usize,
    /// When the id was created, in ms since 1970.
    pub time_ms: u64,
    /// Its name, which no other has.
    pub name: String,
    /// How much it is about.
    pub amount: i64,
    /// The change.
    pub deed: Deed,
}

/// A change of an account, to be applied once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Money comes in.
    Deposit,
    /// Money goes out.
    Deduct,
    /// Money is set aside until this time, in ms since 1970.
    Reserve(u64),
    /// The same, of which half goes to the account of this number once it is spent, and the other half comes back.
    ReserveFor(u64, usize),
    /// Money goes to the account of this number; the one after the last does not exist.
    Transfer(usize),
    /// Half of the money goes to each of these accounts, or none to any.
    Legs([usize; 2]),
}

impl Order {
    /// Whether money is set aside.
    pub fn is_reservation(&self) -> bool {
        matches!(self.deed, Deed::Reserve(_) | Deed::ReserveFor(..))
    }

    /// How much an account receives, if it receives something.
    pub fn amount_of_each(&self) -> i64 {
        match self.deed {
            Deed::Legs(_) | Deed::ReserveFor(..) => self.amount / 2,
            Deed::Deposit | Deed::Deduct | Deed::Reserve(_) | Deed::Transfer(_) => self.amount,
        }
    }
}

/// What a call was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done; of a transfer, at both ends.
    Done,
    /// The whole was short.
    Insufficient,
    /// The money is set aside.
    Held,
    /// What became of a reservation.
    Ended(End),
    /// The money of a transfer is back, or was never taken.
    Returned,
    /// There is no account to send money to, and nothing was taken: a repeat may find one.
    Absent,
    /// How much there is.
    Balance(Balance),
    /// What is in the log.
    Logged(Logged),
    /// How often a latch is still to be counted down.
    Left(u64),
    /// The latch is not set, or has lost counts.
    Gone(String),
    /// Nothing was done, for a reason that passes.
    Nothing(String),
    /// It may have been done or not.
    Unknown(String),
    /// It may have been done in a segment that was lost since, and will not be done any more.
    TooOld,
    /// No such reservation is known: it may have been forgotten.
    Unreserved,
    /// The account has never seen the order.
    Unseen,
    /// It failed in a way that nothing here is a reason for.
    Failed(String),
}

/// How a reservation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It was spent.
    Confirmed,
    /// It was given back.
    Cancelled,
    /// It came back at its deadline.
    Expired,
}

/// What the log of an account says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// The effects of orders.
    pub effects: Vec<LoggedEffect>,
    /// The sum of all effects on what can be spent, with what is on its way between segments.
    pub available: i64,
    /// The sum of all effects on what is set aside.
    pub held: i64,
    /// Why the log of a segment does not add up, if it does not.
    pub broken: Option<String>,
}

/// An effect of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEffect {
    /// The number of the account that the order is of.
    pub account: usize,
    /// The name of the order.
    pub name: String,
    /// What changed.
    pub word: EffectWord,
    /// How much.
    pub amount: i64,
}

/// The kinds of effects of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "as in the log of an account")]
pub enum EffectWord {
    Deposited,
    Deducted,
    Reserved,
    Confirmed,
    Cancelled,
    Expired,
    Sent,
    Delivered,
    Returned,
    Received,
}

/// How much there is in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// What can be spent.
    pub available: i64,
    /// The reserved money.
    pub held: i64,
    /// How often some may have been lost.
    pub losses: u64,
}
