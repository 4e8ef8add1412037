//! The reasons why a command about a counter failed.

use nix::sys::signal::Signal;
use ringfence_client::counter::{AmountError, CounterError, Effect, RequestId, segment::Refusal};

use super::account::id_text;
use crate::{FAILED, Nature, UNAVAILABLE, USAGE, ring::RingError, signals::Signals};

/// The request may have been applied (sysexits: EX_TEMPFAIL).
const UNKNOWN: u8 = 75;
/// The id is too old (sysexits: EX_DATAERR).
const TOO_OLD: u8 = 65;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Servers(#[from] RingError),
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// A request failed that can be repeated. `repeats`: an earlier attempt may have used its id.
    #[error("request {}: {error}{}", id_text(.id), advice(.error, *.repeats))]
    Request {
        id: RequestId,
        repeats: bool,
        error: CounterError,
    },
    /// A signal came before the answer.
    #[error(
        "request {}: {signal} came before the answer; it may have been done: repeat it with this --id",
        id_text(.id)
    )]
    Interrupted { id: RequestId, signal: Signal },
    /// What was reserved is not there any more.
    #[error("request {}: the reservation was already {outcome}", id_text(.id))]
    Ended {
        id: RequestId,
        outcome: &'static str,
    },
    /// The account exists, with other terms.
    #[error(
        "account {account} exists already, and its number of segments is {homes}, not {wanted}; to change that: \
        ringfence counter resegment {account} {wanted}"
    )]
    OtherSegments {
        account: String,
        homes: u32,
        wanted: u32,
    },
    #[error("the accounts of {shards} shards are missing")]
    Unlisted { shards: usize },
    /// Work on many accounts failed for some of them.
    #[error("{failed} accounts failed: repeat the command")]
    Undone { failed: u64 },
    #[error(transparent)]
    Counter(#[from] CounterError),
    #[error("{0}")]
    Usage(String),
}

/// The advice for a request that may have been applied, or may be if it is repeated.
fn advice(error: &CounterError, repeats: bool) -> &'static str {
    let earlier = repeats && error.effect() == Effect::Unknown;
    match (error.effect_of_call(), error.is_retryable()) {
        (Effect::Unknown, true) => "; it may have been done: repeat it with this --id",
        (Effect::Unknown, false) => "; whether it was done is not known",
        (Effect::None, _) if earlier => {
            "; nothing was done by this attempt, but an earlier one may have done it: repeat it with this --id"
        }
        (Effect::None, true) => "; nothing was done by this attempt: repeat it with this --id",
        (Effect::None, false) => "",
    }
}

impl CliError {
    /// Its retryability and effect.
    pub(crate) fn nature(&self) -> Nature {
        match self {
            Self::Servers(error) => error.nature(),
            Self::Request {
                error,
                repeats: false,
                ..
            } => Nature::new(error.is_retryable(), error.effect_of_call()),
            Self::Request { error, .. } | Self::Counter(error) => {
                Nature::new(error.is_retryable(), error.effect())
            }
            Self::Interrupted { .. } | Self::Undone { .. } => Nature::new(true, Effect::Unknown),
            Self::Unlisted { .. } => Nature::new(true, Effect::None),
            Self::Amount(_) | Self::Ended { .. } | Self::OtherSegments { .. } | Self::Usage(_) => {
                Nature::new(false, Effect::None)
            }
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Servers(error) => match error.code() {
                FAILED => UNAVAILABLE,
                code => code,
            },
            Self::Amount(_) | Self::Usage(_) => USAGE,
            Self::Ended { .. } | Self::OtherSegments { .. } => FAILED,
            Self::Interrupted { .. } | Self::Undone { .. } => UNKNOWN,
            Self::Unlisted { .. } => UNAVAILABLE,
            Self::Request {
                error,
                repeats: true,
                ..
            } => code_of_repeat(error),
            Self::Request { error, .. } | Self::Counter(error) => code(error),
        }
    }
}

fn code(error: &CounterError) -> u8 {
    match error {
        CounterError::Name(_) | CounterError::Legs(_) => USAGE,
        CounterError::Refused(Refusal::TooOld { .. } | Refusal::IdExpired { .. }) => TOO_OLD,
        _ if error.effect_of_call() == Effect::Unknown => UNKNOWN,
        // A coordinator does not let the call pass, or its shards cannot serve it.
        CounterError::Service(error) if error.effect == Effect::Unknown => UNAVAILABLE,
        CounterError::Storage(_)
        | CounterError::Lost { .. }
        | CounterError::Refused(Refusal::Missing | Refusal::Doubtful) => UNAVAILABLE,
        // It may fit later, but not because the servers do.
        CounterError::Refused(Refusal::Full { .. }) => FAILED,
        _ if error.is_retryable() => UNAVAILABLE,
        _ => FAILED,
    }
}

/// For a request that an earlier attempt may have applied: only an answer that every repeat gets is a failure.
fn code_of_repeat(error: &CounterError) -> u8 {
    match error {
        CounterError::Name(_) | CounterError::Legs(_) => USAGE,
        CounterError::Refused(Refusal::TooOld { .. } | Refusal::IdExpired { .. }) => TOO_OLD,
        // The account may be created later, and the request repeated.
        CounterError::NoDestination { .. } => UNKNOWN,
        _ if error.effect() == Effect::None && !error.is_retryable() => FAILED,
        _ => UNKNOWN,
    }
}

/// The answer to `call`, which sends the request `id`. An error names the request, also if a signal ends the wait.
/// `repeats`: an earlier attempt may have used the id.
pub(super) async fn answer<T>(
    id: &RequestId,
    repeats: bool,
    call: impl Future<Output = Result<T, CounterError>>,
) -> Result<T, CliError> {
    let id = id.clone();
    let mut signals = Signals::listen().map_err(RingError::Runtime)?;
    tokio::select! {
        biased;
        answered = call => answered.map_err(|error| CliError::Request { id, repeats, error }),
        signal = signals.next() => Err(CliError::Interrupted { id, signal }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_too_old_is_not_to_be_repeated() {
        let too_old = CounterError::Refused(Refusal::TooOld { mark_ms: 1 });
        assert_eq!(
            (code(&too_old), code_of_repeat(&too_old)),
            (TOO_OLD, TOO_OLD)
        );
        let advice = advice(&too_old, true);
        assert!(!advice.contains("repeat"), "{advice}");
    }
}
