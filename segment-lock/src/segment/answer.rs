//! The answers of a segment.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Channel, CreditId, HistoryPage, Outcome, State};
use crate::{Effect, RequestId};

/// A segment's answer to a [`Request`](super::Request).
pub type Answer = Result<Reply, Refusal>;

/// The amounts in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Money {
    /// Money that may be spent.
    pub value: i64,
    /// Money set aside.
    pub held: i64,
}

/// A segment's money, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentView {
    /// Money that may be spent.
    pub value: i64,
    /// Money set aside.
    pub held: i64,
    /// Rises with every change of `value` or of a channel.
    pub version: u64,
    /// The last loan to each other segment.
    pub out: BTreeMap<u32, Channel>,
    /// The number of the last loan that landed from each other segment.
    pub inn: BTreeMap<u32, u64>,
    /// In doubt: it moves no money until an operator has accepted its state.
    pub doubtful: bool,
    /// How often it may have lost its last changes and continued.
    pub losses: u64,
    /// The segment's clock, in ms since 1970.
    pub now_ms: u64,
    /// Transfers that are not finished: sent from here, or received and not known to be finished at their source.
    pub unfinished: usize,
    /// Ids of this time and before may have been forgotten, in ms since 1970. In an
    /// [`Inspection`](crate::Inspection), 0: it has forgotten none.
    pub mark_ms: u64,
}

/// A credit that is not finished at its source, as far as the destination knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedCredit {
    /// The credit.
    pub id: CreditId,
    /// When the money was promised to be received, in ms since 1970 on the segment's clock. `None`: it is received.
    pub promised_ms: Option<u64>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request's answer, now or earlier, with its present state, and the segment's money after it, or now.
    Recorded(State, Money),
    /// The segment has too little. Nothing was recorded.
    Short(Box<SegmentView>),
    /// The segment's money.
    View(Box<SegmentView>),
    /// This loan is in flight, made now or earlier.
    Lent(Channel),
    /// The segment has nothing to lend.
    Nothing,
    /// The loan landed.
    Landed,
    /// A loan of that number, or a later one, has landed already; or the plan is an older one. Nothing was done.
    Stale,
    /// The segment has another version: read again. Nothing was recorded.
    Changed,
    /// No such request is known. It may still come.
    Unknown,
    /// A transfer's answer, now or earlier.
    Credited(Outcome),
    /// There is room for the money, since now or earlier.
    Promised,
    /// Transfers and captures that are not finished, each with its state.
    Sent(Vec<(RequestId, State)>),
    /// A part of the log.
    History(HistoryPage),
    /// Credits that are not finished.
    Pinned(Vec<PinnedCredit>),
    /// The number of reservations that came back.
    Expired(usize),
    /// The number of answers dropped: the bound of one request, or fewer if no more may be dropped.
    Purged(usize),
    /// The segment is prepared for the plan, now or earlier.
    Prepared,
    /// The segment has decided ids that would have another home by the plan. Replace it by a plan that begins after
    /// `after_ms`, and not before `now_ms` and the skew.
    Later {
        /// The greatest time of an id that was decided, or may be forgotten, in ms.
        after_ms: u64,
        /// The segment's clock, in ms since 1970.
        now_ms: u64,
    },
    /// The segment is empty, and is gone with this answer.
    Removed,
    /// The copy of the account's manifest.
    Copied {
        /// The text, with the plan that the segment was last prepared for.
        manifest: Arc<str>,
        /// Whether the segment takes no new money.
        closed: bool,
    },
    /// Done, or there was nothing to do.
    Done,
}

/// The reason why a segment refused a request. It did nothing of the request; at most it landed the loans that came
/// with it, and expired reservations, which any request may do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The segment does not exist.
    #[error("the segment does not exist")]
    Missing,
    /// The segment may have lost its last changes.
    #[error(
        "the segment is in doubt: it may have lost its last changes, and a person must accept it"
    )]
    Doubtful,
    /// The caller knows only older layouts: read the manifest, and finish its plan.
    #[error("the segment is prepared for generation {generation}: read the account's manifest")]
    Layout {
        /// The segment's generation.
        generation: u64,
    },
    /// The id was used for a request with other content.
    #[error("the request id was used before, for another request")]
    Conflict,
    /// The id may have been forgotten. Whether it took effect is no longer known.
    #[error("the request is too old: answers up to {mark_ms} ms since 1970 may be forgotten")]
    TooOld {
        /// Ids up to this time may be forgotten, in ms.
        mark_ms: u64,
    },
    /// The id is older than the segment remembers answers, and was never decided: nothing was applied.
    #[error(
        "the request is too old: answers are remembered from {since_ms} ms since 1970 on; nothing was applied"
    )]
    IdExpired {
        /// Ids up to this time are forgotten, or may be soon, in ms.
        since_ms: u64,
    },
    /// The id's time is ahead of the segment's clock.
    #[error("the request was created {ahead_ms} ms in the future, must be at most {skew_ms}")]
    IdInFuture {
        /// How far ahead, in ms.
        ahead_ms: u64,
        /// The greatest allowed value, in ms.
        skew_ms: u64,
    },
    /// Another caller has frozen the segment; or it belongs to a deleted account, and cannot be removed yet.
    #[error(
        "the segment is frozen, or its account was just deleted: repeat in {retry_after_ms} ms"
    )]
    Busy {
        /// The latest end, in ms from now.
        retry_after_ms: u64,
    },
    /// The segment remembers as many answers as it may.
    #[error("the segment remembers {ids_max} requests: no new requests for {retry_after_ms} ms")]
    TooManyIds {
        /// The greatest number.
        ids_max: usize,
        /// The time until the oldest may be forgotten, in ms.
        retry_after_ms: u64,
    },
    /// The segment would have more than fits, or more than the account's ceiling.
    #[error("the segment has {owned}, and cannot take {amount}: at most {max}")]
    Full {
        /// Its money, including held money; of an account with a ceiling, the ledger balance.
        owned: i64,
        /// The amount to be added.
        amount: i128,
        /// The most that it may have: [`AMOUNT_MAX`](crate::limits::AMOUNT_MAX), or the account's ceiling.
        max: i64,
    },
    /// The reservation would be held for longer than requests are remembered.
    #[error("deadline_ms is {deadline_ms}, must be at most {max_ms} for a request of that time")]
    DeadlineTooLate {
        /// The refused deadline, in ms.
        deadline_ms: u64,
        /// The latest allowed, in ms.
        max_ms: u64,
    },
    /// More than the reservation has.
    #[error("amount is {amount}, must be at most {reserved}: so much is reserved")]
    AboveReserved {
        /// The refused amount: that to confirm, or the sum of the legs.
        amount: i64,
        /// The reserved amount.
        reserved: i64,
    },
    /// The account keeps no log of its effects: it was created so.
    #[error(
        "the account keeps no log, nor references of requests: it was created with effects_max 0"
    )]
    NoLog,
    /// The account takes no new money.
    #[error("the account is closed")]
    Closed,
    /// The segment's clock and the caller's differ by so much that one of them is wrong. By a wrong clock, an operator's
    /// decision would refuse requests for as long as it is ahead. Repeat it when both are right.
    #[error(
        "the shard's clock shows {now_ms} ms since 1970, and the caller's {at_ms}: they may differ by at most {max_ms} ms; \
         set the wrong one right, and repeat"
    )]
    ClocksDiffer {
        /// The segment's clock.
        now_ms: u64,
        /// The caller's clock.
        at_ms: u64,
        /// The greatest difference, in ms.
        max_ms: u64,
    },
}

impl Refusal {
    /// Whether the same request may succeed if it is repeated, at the right segment.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Layout { .. }
            | Self::IdInFuture { .. }
            | Self::Busy { .. }
            | Self::TooManyIds { .. }
            | Self::Full { .. } => true,
            Self::Missing
            | Self::Doubtful
            | Self::Conflict
            | Self::TooOld { .. }
            | Self::IdExpired { .. }
            | Self::DeadlineTooLate { .. }
            | Self::AboveReserved { .. }
            | Self::NoLog
            | Self::Closed
            | Self::ClocksDiffer { .. } => false,
        }
    }

    /// Whether the id's request may have been applied, by this call or by an earlier one.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Missing | Self::Doubtful | Self::Layout { .. } | Self::TooOld { .. } => {
                Effect::Unknown
            }
            Self::Conflict
            | Self::IdExpired { .. }
            | Self::IdInFuture { .. }
            | Self::Busy { .. }
            | Self::TooManyIds { .. }
            | Self::Full { .. }
            | Self::DeadlineTooLate { .. }
            | Self::AboveReserved { .. }
            | Self::NoLog
            | Self::Closed
            | Self::ClocksDiffer { .. } => Effect::None,
        }
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::IdInFuture { ahead_ms, skew_ms } => {
                Some(Duration::from_millis(ahead_ms.saturating_sub(*skew_ms)))
            }
            Self::Busy { retry_after_ms } | Self::TooManyIds { retry_after_ms, .. } => {
                Some(Duration::from_millis(*retry_after_ms))
            }
            _ => None,
        }
    }
}
