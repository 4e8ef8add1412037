//! Requests and answers. A request, once sent, is there for good: it arrives any number of times.

use super::state::{Land, Lent, Money, Outcome};

/// What a task asks a segment.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The task.
    pub task: u8,
    /// In which of its rounds.
    pub round: u8,
    /// The segment.
    pub segment: u8,
    /// The layout that it goes by.
    pub layout: u8,
    /// The verb.
    pub ask: Ask,
}

/// The verbs.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// At home: land these, then do it.
    Operate(Vec<Land>),
    /// How much is there?
    Collect {
        /// To compare it with the first.
        again: bool,
    },
    /// Lend so much.
    Lend {
        /// The destination.
        to: u8,
        /// What last landed there from here.
        landed: u8,
        /// At most so much.
        want: i8,
    },
    /// Land this.
    Land(Land),
    /// At home: record that there is not enough, if nothing has changed since this version.
    Refuse {
        /// As it was told.
        version: u8,
    },
    /// At a transfer's destination: give the money.
    Credit,
    /// In the destination's manifest: refuse it, if there is no such account.
    RefuseThere,
    /// At its source: the money was given, or refused.
    FinishTransfer {
        /// Which.
        credited: bool,
    },
    /// At its destination: the transfer is finished at its source.
    Forget,
    /// At home: a reservation's money is taken.
    Confirm,
    /// At home: it is given back.
    Cancel,
}

/// Answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The id is recorded.
    Recorded(Outcome),
    /// … with other content.
    Conflict,
    /// The id is at or below the mark.
    TooOld,
    /// The id is not known.
    Unknown,
    /// There is not enough here.
    Short(Money),
    /// What a read shows.
    Shown(Money),
    Lent(Lent),
    NotLent,
    Landed,
    /// Refuse found another version.
    Changed,
    Credited,
    CreditRefused,
    /// There is no such account.
    NoAccount,
    /// … or there is by now.
    Exists,
    /// Frozen by another: ask again.
    Busy,
    /// Go by a newer layout.
    Layout,
    /// The tail may be lost.
    Doubtful,
    /// There is no segment.
    Missing,
    /// No task waits for it.
    Nothing,
}
