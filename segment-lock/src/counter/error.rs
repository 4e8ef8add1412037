//! The reasons why a call on a counter failed.

use std::{fmt, time::Duration};

use super::LostSegments;
use crate::{
    Account, Effect, LegsError, ManifestError, NameError, StorageError, Unit, segment::Refusal,
};

/// The service refused a request about a counter, for a reason that is no other variant of [`CounterError`], or gave no
/// answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    /// The reason, for people.
    pub message: String,
    /// Whether the same call, with the same id, may succeed if it is repeated.
    pub is_retryable: bool,
    /// Whether the request may have been applied, by this call or by an earlier one of the same id.
    pub effect: Effect,
    /// Whether this call may have applied it, apart from earlier calls of the same id.
    pub effect_of_call: Effect,
    /// The earliest time for another attempt, if it is known.
    pub retry_after: Option<Duration>,
}

impl ServiceError {
    /// Whether the same call, with the same id, may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether the request may have been applied.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// What is in an account that cannot be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remainder {
    /// What it has, without its credit line.
    pub ledger: i128,
    /// The part of it that is held.
    pub held: i128,
    /// The number of its transfers that are not finished, as far as known.
    pub unfinished: usize,
}

impl fmt::Display for Remainder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ledger,
            held,
            unfinished,
        } = self;
        write!(
            out,
            "its ledger balance is {ledger}, held {held}, unfinished transfers {unfinished}"
        )
    }
}

/// The reason why a call on a counter failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// At some instant of the request, the whole account had too little. Every repeat gets this answer.
    #[error("the balance was insufficient")]
    Insufficient,
    /// The reservation of that id was cancelled, possibly before it arrived.
    #[error("the request was cancelled")]
    Cancelled,
    /// No reservation of that id is known. It may still arrive.
    #[error("unknown reservation")]
    UnknownReservation,
    /// The destination refused the transfer: it is closed, full, of another unit, or does not exist, or the request was
    /// too old on arrival. The money is back at its source.
    #[error("account {to} refused the transfer, and the money is back")]
    TransferRefused {
        /// The destination.
        to: Account,
    },
    /// The account to transfer to does not exist. Nothing was taken.
    #[error("account {to} does not exist; nothing was deducted")]
    NoDestination {
        /// The destination.
        to: Account,
    },
    /// The account to transfer to has another unit. Nothing was taken.
    #[error("the unit of account {to} is {:?}, not {:?}; nothing was deducted", .units.1, .units.0)]
    OtherUnit {
        /// The destination.
        to: Account,
        /// The unit of the source, and that of the destination.
        units: Box<(Unit, Unit)>,
    },
    /// The transfer has begun and is not finished. Repeat it, or leave that to the next sweep of the account.
    #[error("transfer not finished: {because}")]
    TransferUnfinished {
        /// The cause.
        because: Box<CounterError>,
    },
    /// The account does not exist.
    #[error("account {account} does not exist")]
    NoAccount {
        /// The account.
        account: Account,
    },
    /// An account of that name exists, with other terms.
    #[error("account {account} exists already, with other terms")]
    AccountExists {
        /// The account.
        account: Account,
    },
    /// The account lost segments with their storage, and the request needs one of them. It decides nothing there until
    /// an operator [accepts](super::Counter::accept) the loss.
    #[error(
        "account {account} lost {segments}; to go on without that money: Counter::accept, ringfence counter accept"
    )]
    Lost {
        /// The account.
        account: Account,
        /// The lost segments.
        segments: LostSegments,
    },
    /// The account has money or unfinished transfers, so it cannot be deleted.
    #[error("account {account} is not empty: {remainder}")]
    NotEmpty {
        /// The account.
        account: Account,
        /// What is in it.
        remainder: Box<Remainder>,
    },
    /// Other callers changed the account during each attempt, or kept it frozen.
    #[error("gave up after {rounds} rounds: other requests changed the account, or kept it frozen")]
    Contended {
        /// The number of attempts.
        rounds: u32,
    },
    /// A name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Legs are not valid.
    #[error(transparent)]
    Legs(#[from] LegsError),
    /// A segment refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The manifest does not allow this change.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The storage gave no answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The service refused, or gave no answer.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The storage's answer does not fit the request: the storage is of another release.
    #[error("unexpected answer to {request}: {reply}")]
    Unexpected {
        /// The request.
        request: &'static str,
        /// The answer.
        reply: String,
    },
}

impl CounterError {
    /// Whether the same call, with the same id, may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnknownReservation | Self::TransferUnfinished { .. } | Self::Contended { .. } => {
                true
            }
            Self::Insufficient
            | Self::Cancelled
            | Self::TransferRefused { .. }
            | Self::NoDestination { .. }
            | Self::OtherUnit { .. }
            | Self::NoAccount { .. }
            | Self::AccountExists { .. }
            | Self::NotEmpty { .. }
            | Self::Lost { .. }
            | Self::Name(_)
            | Self::Legs(_)
            | Self::Unexpected { .. } => false,
            Self::Refused(refusal) => refusal.is_retryable(),
            Self::Manifest(error) => error.is_retryable(),
            Self::Storage(error) => error.is_retryable,
            Self::Service(error) => error.is_retryable,
        }
    }

    /// Whether the request may have been applied, by this call or by an earlier one of the same id.
    ///
    /// [`Effect::None`] only if the id was looked up in a segment that cannot have lost it, and was not applied.
    /// Otherwise a caller that uses a new id may pay twice: repeat the request under its id.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Manifest(ManifestError::Open | ManifestError::CreditLine { .. }) => Effect::None,
            Self::Storage(_)
            | Self::Manifest(_)
            | Self::NoAccount { .. }
            | Self::Lost { .. }
            | Self::Contended { .. }
            | Self::TransferUnfinished { .. }
            | Self::Unexpected { .. } => Effect::Unknown,
            Self::Insufficient
            | Self::Cancelled
            | Self::UnknownReservation
            | Self::TransferRefused { .. }
            | Self::NoDestination { .. }
            | Self::OtherUnit { .. }
            | Self::AccountExists { .. }
            | Self::NotEmpty { .. }
            | Self::Name(_)
            | Self::Legs(_) => Effect::None,
            Self::Refused(refusal) => refusal.effect(),
            Self::Service(error) => error.effect,
        }
    }

    /// Whether this call may have applied the request, apart from earlier calls of the same id. Equal to
    /// [`effect`](Self::effect) for an id that no earlier call has used.
    pub fn effect_of_call(&self) -> Effect {
        match self {
            Self::Storage(error) => error.effect,
            Self::Service(error) => error.effect_of_call,
            Self::Manifest(_)
            | Self::NoAccount { .. }
            | Self::Lost { .. }
            | Self::Refused(Refusal::Missing | Refusal::Doubtful | Refusal::Layout { .. }) => {
                Effect::None
            }
            error => error.effect(),
        }
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after(),
            Self::TransferUnfinished { because } => because.retry_after(),
            Self::Storage(error) => error.retry_after(),
            Self::Service(error) => error.retry_after,
            _ => None,
        }
    }

    /// The same error after a failure that did not concern the request itself: a read, or a loan.
    pub(super) fn aside(self) -> Self {
        match self {
            Self::Storage(error) => Self::Storage(error.aside()),
            error => error,
        }
    }

    pub(super) fn unexpected(request: &'static str, reply: &impl std::fmt::Debug) -> Self {
        Self::Unexpected {
            request,
            reply: format!("{reply:?}"),
        }
    }
}
