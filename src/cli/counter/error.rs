//! Why a command about a counter did not do what was asked.

use ringfence_client::counter::{AmountError, CounterError, Effect, RequestId};

use crate::cli::{FAILED, USAGE, ring::RingError};

/// Nobody could do it; nothing was done (sysexits: EX_UNAVAILABLE).
const UNAVAILABLE: u8 = 69;
/// It may have been done (sysexits: EX_TEMPFAIL).
const UNKNOWN: u8 = 75;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Servers(#[from] RingError),
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// Of a request that can be repeated.
    #[error("request {id}: {error}{}", advice(.error))]
    Request { id: RequestId, error: CounterError },
    /// What was reserved is not there any more.
    #[error("request {id}: the reservation was {outcome} before")]
    Ended {
        id: RequestId,
        outcome: &'static str,
    },
    #[error(transparent)]
    Counter(#[from] CounterError),
    #[error("{0}")]
    Usage(String),
}

/// What to do about a request that may have been done, or may be if it is repeated.
fn advice(error: &CounterError) -> &'static str {
    match (error.effect(), error.is_retryable()) {
        (Effect::Unknown, true) => "; it may have been done: repeat it with this --id",
        (Effect::Unknown, false) => "; whether it was done is not known",
        (Effect::None, true) => "; nothing was done: repeat it with this --id",
        (Effect::None, false) => "",
    }
}

impl CliError {
    /// What to exit with.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Servers(error) => match error.code() {
                FAILED => UNAVAILABLE,
                code => code,
            },
            Self::Amount(_) | Self::Usage(_) => USAGE,
            Self::Ended { .. } => FAILED,
            Self::Request { error, .. } | Self::Counter(error) => code(error),
        }
    }
}

fn code(error: &CounterError) -> u8 {
    match error {
        CounterError::Name(_) => USAGE,
        _ if error.effect() == Effect::Unknown => UNKNOWN,
        CounterError::Storage(_) => UNAVAILABLE,
        _ if error.is_retryable() => UNAVAILABLE,
        _ => FAILED,
    }
}

/// Gives an error the request it is of.
pub(super) fn of(id: &RequestId) -> impl FnOnce(CounterError) -> CliError {
    let id = id.clone();
    move |error| CliError::Request { id, error }
}
