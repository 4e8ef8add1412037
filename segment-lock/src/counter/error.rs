//! Why a call on a counter failed.

use std::time::Duration;

use super::LostSegments;
use crate::{Account, Effect, ManifestError, NameError, StorageError, segment::Refusal};

/// Why a call on a counter failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// The whole was short at some instant of the request. Every repeat gets this answer.
    #[error("the balance was insufficient")]
    Insufficient,
    /// The reservation of that id was cancelled, perhaps before it came.
    #[error("the request was cancelled")]
    Cancelled,
    /// No reservation of that id is known. It may still come.
    #[error("unknown reservation")]
    UnknownReservation,
    /// The destination refused the transfer: it is closed, or full, or does not exist, or the request
    /// was too old to arrive. The money is back.
    #[error("account {to} refused the transfer, and the money is back")]
    TransferRefused {
        /// The destination.
        to: Account,
    },
    /// There is no account to transfer to. Nothing was taken.
    #[error("account {to} does not exist; nothing was deducted")]
    NoDestination {
        /// The destination.
        to: Account,
    },
    /// The money is on its way, and neither here nor there. Repeat the transfer, or leave it to
    /// whoever sweeps the account.
    #[error("transfer not finished: {because}")]
    TransferUnfinished {
        /// What came in between.
        because: Box<CounterError>,
    },
    /// There is no such account.
    #[error("account {account} does not exist")]
    NoAccount {
        /// The account.
        account: Account,
    },
    /// There is an account of that name, with other terms.
    #[error("account {account} exists already, with other terms")]
    AccountExists {
        /// The account.
        account: Account,
    },
    /// The account's storage lost segments, and the request needs one of them. Until a person [accepts](super::Counter::accept)
    /// that, nothing is decided there.
    #[error(
        "account {account} lost {segments}; to go on without that money: Counter::accept, ringfence counter accept"
    )]
    Lost {
        /// The account.
        account: Account,
        /// Which segments.
        segments: LostSegments,
    },
    /// Others changed the account again and again while it was read, or kept it frozen.
    #[error("gave up after {rounds} rounds: other requests changed the account, or kept it frozen")]
    Contended {
        /// How often it was tried.
        rounds: u32,
    },
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A segment refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The manifest cannot be changed so.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The storage gave no answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The storage answered something else than it was asked: it is not of this release.
    #[error("unexpected answer to {request}: {reply}")]
    Unexpected {
        /// What was asked.
        request: &'static str,
        /// What it answered.
        reply: String,
    },
}

impl CounterError {
    /// Whether the same call, with the same id, may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnknownReservation | Self::TransferUnfinished { .. } | Self::Contended { .. } => {
                true
            }
            Self::Insufficient
            | Self::Cancelled
            | Self::TransferRefused { .. }
            | Self::NoDestination { .. }
            | Self::NoAccount { .. }
            | Self::AccountExists { .. }
            | Self::Lost { .. }
            | Self::Name(_)
            | Self::Unexpected { .. } => false,
            Self::Refused(refusal) => refusal.is_retryable(),
            Self::Manifest(error) => error.is_retryable(),
            Self::Storage(error) => error.is_retryable,
        }
    }

    /// Whether the request may have been applied, by this call or by an earlier one of the same id.
    ///
    /// [`Effect::None`] only where the id was looked up, in a segment that may not have lost it, and
    /// was not applied. Otherwise a caller that uses a new id may pay twice: repeat the request under
    /// its id.
    pub fn effect(&self) -> Effect {
        match self {
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
            | Self::AccountExists { .. }
            | Self::Name(_) => Effect::None,
            Self::Refused(refusal) => refusal.effect(),
        }
    }

    /// Whether this call may have applied the request: what earlier calls of the same id did is not
    /// part of it. Equal to [`effect`](Self::effect) for an id that no earlier call has used.
    pub fn effect_of_call(&self) -> Effect {
        match self {
            Self::Storage(error) => error.effect,
            Self::Manifest(_)
            | Self::NoAccount { .. }
            | Self::Lost { .. }
            | Self::Refused(Refusal::Missing | Refusal::Doubtful | Refusal::Layout { .. }) => {
                Effect::None
            }
            error => error.effect(),
        }
    }

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after(),
            Self::TransferUnfinished { because } => because.retry_after(),
            Self::Storage(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The same, where all that failed was beside what was asked for: a read, a loan.
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
