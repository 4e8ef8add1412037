//! Errors of locks and counters, as errors of the API.

use std::fmt::Debug;

use ringfence_api::{Error, Reason};
use ringfence_client::{
    AcquireError, CounterFault, Effect, Failure, NameError, ShardError,
    counter::{
        CounterError, ManifestError, NameError as CounterNameError, TermsError,
        limits::{AMOUNT_MAX, SEGMENTS_MAX},
        segment::Refusal,
    },
    limits::{KEY_BYTES_MAX, LEASE_MIN, NAMESPACE_BYTES_MAX},
};

/// `error`, for `reason`, with its consequences.
fn of(reason: Reason, error: &dyn Failure) -> Error {
    Error {
        reason,
        message: error.to_string(),
        is_retryable: error.is_retryable(),
        effect: match error.effect() {
            Effect::None => ringfence_api::Effect::None,
            Effect::Unknown => ringfence_api::Effect::Unknown,
        },
        retry_after: error.retry_after(),
        input: None,
    }
}

/// The coordinator stops: another one may serve the call.
pub(crate) fn stopping() -> Error {
    Error {
        reason: Reason::Stopping,
        message: "this coordinator stops: use another one".into(),
        is_retryable: true,
        effect: ringfence_api::Effect::None,
        retry_after: None,
        input: None,
    }
}

/// A name that was refused.
pub(crate) fn name(error: &NameError) -> Error {
    match error {
        NameError::KeyEmpty => key(0),
        NameError::KeyTooLong(length) => key(*length),
        NameError::Namespace(name) => Error::invalid(
            "namespace",
            format!("{name:?}"),
            format!("1 to {NAMESPACE_BYTES_MAX} of a-z, 0-9, '-' and '_', a letter first"),
        ),
        error => of(Reason::Internal, error),
    }
}

fn key(length: usize) -> Error {
    let value = format!("{length} bytes long");
    Error::invalid("key", value, format!("1 to {KEY_BYTES_MAX}"))
}

/// A lock that was not granted, or a call about one that failed.
pub(crate) fn lock(error: &AcquireError) -> Error {
    let short = |field, length: &dyn Debug| {
        Error::invalid(
            field,
            format!("{length:?}"),
            format!("at least {LEASE_MIN:?}"),
        )
    };
    let reason = match error {
        AcquireError::Name(error) => return name(error),
        AcquireError::LeaseTooLong { lease, max } => {
            return Error::invalid(
                "lease",
                format!("{lease:?}"),
                format!("at most {max:?}, the longest lease of the topology"),
            );
        }
        AcquireError::LeaseTooShort(lease) => return short("lease", lease),
        AcquireError::HoldTooShort(length) => return short("hold_for", length),
        AcquireError::Closed => return stopping(),
        AcquireError::Held { .. } => Reason::Held,
        AcquireError::Moving { .. } | AcquireError::Moved => Reason::Moving,
        AcquireError::Grace { .. } => Reason::Recovering,
        AcquireError::TimedOut { .. } => Reason::TimedOut,
        AcquireError::TooManyWaiters { .. } => Reason::TooManyWaiters,
        AcquireError::TooManyHeld(_) => Reason::TooManyHeld,
        AcquireError::OutOfMemory(_) => Reason::OutOfMemory,
        AcquireError::NoTokens(_) => Reason::ShardUnavailable,
        AcquireError::Foreign(_) => Reason::Foreign,
        AcquireError::TooLate => Reason::TooLate,
        AcquireError::Shard(error) => shard(error),
        _ => Reason::Internal,
    };
    of(reason, error)
}

fn shard(error: &ShardError) -> Reason {
    match error {
        ShardError::Refused { .. } => Reason::Internal,
        error if error.is_retryable() => Reason::ShardUnavailable,
        _ => Reason::ShardUnusable,
    }
}

/// A call on a counter that failed.
pub(crate) fn counter(error: &CounterError) -> Error {
    let reason = match error {
        CounterError::Name(error) => return counter_name(error),
        CounterError::Insufficient => Reason::Insufficient,
        CounterError::Cancelled => Reason::Cancelled,
        CounterError::UnknownReservation => Reason::UnknownReservation,
        CounterError::TransferRefused { .. } => Reason::TransferRefused,
        CounterError::TransferUnfinished { .. } => Reason::TransferUnfinished,
        CounterError::NoAccount { .. } | CounterError::NoDestination { .. } => Reason::NoAccount,
        CounterError::AccountExists { .. } => Reason::AccountExists,
        CounterError::Lost { .. } => Reason::SegmentLost,
        CounterError::Contended { .. } => Reason::Contended,
        CounterError::Manifest(ManifestError::Segments { value }) => {
            return Error::invalid("segments", value, format!("1 to {SEGMENTS_MAX}"));
        }
        CounterError::Manifest(ManifestError::Terms(error)) => return terms(error),
        CounterError::Refused(Refusal::DeadlineTooLate {
            deadline_ms,
            max_ms,
        }) => {
            let limit = format!("at most {max_ms} ms for a request of that time");
            return Error::invalid("deadline", format!("{deadline_ms} ms"), limit);
        }
        CounterError::Refused(refusal) => refused(refusal),
        CounterError::Storage(error) => match error.source.downcast_ref() {
            Some(fault) => faulted(fault, error.is_retryable),
            None => Reason::Internal,
        },
        _ => Reason::Internal,
    };
    of(reason, error)
}

fn refused(refusal: &Refusal) -> Reason {
    match refusal {
        Refusal::Missing | Refusal::Doubtful => Reason::SegmentLost,
        Refusal::Layout { .. } | Refusal::Busy { .. } => Reason::Contended,
        Refusal::Conflict => Reason::IdConflict,
        Refusal::TooOld { .. } => Reason::IdTooOld,
        Refusal::IdInFuture { .. } => Reason::IdInFuture,
        Refusal::TooManyIds { .. } => Reason::TooManyIds,
        Refusal::Full { .. } => Reason::OutOfRange,
        Refusal::Closed => Reason::AccountClosed,
        _ => Reason::Internal,
    }
}

fn faulted(fault: &CounterFault, is_retryable: bool) -> Reason {
    match fault {
        CounterFault::Shard { error, .. } => shard(error),
        CounterFault::Moves { .. } => Reason::Moving,
        CounterFault::OutOfMemory { .. } => Reason::OutOfMemory,
        CounterFault::Foreign { .. } => Reason::Foreign,
        CounterFault::NotOnDisk { .. } => Reason::ShardUnusable,
        CounterFault::Closed => Reason::Stopping,
        _ if is_retryable => Reason::ShardUnavailable,
        _ => Reason::Internal,
    }
}

/// The name of an account or of a request that was refused.
pub(crate) fn counter_name(error: &CounterNameError) -> Error {
    let CounterNameError { field, len, max } = error;
    Error::invalid(field, format!("{len} bytes long"), format!("1 to {max}"))
}

/// An amount that was refused.
pub(crate) fn amount(value: i64) -> Error {
    Error::invalid("amount", value, format!("1 to {AMOUNT_MAX}"))
}

/// A term of an account that was refused.
fn terms(error: &TermsError) -> Error {
    let field = match error.field {
        "idempotency_for_ms" => "idempotency_for",
        "idempotency_at_least_ms" => "idempotency_at_least",
        "skew_ms" => "skew",
        field => field,
    };
    let unit = match field == error.field {
        true => "",
        false => " ms",
    };
    let (value, max) = (error.value, error.max);
    Error::invalid(field, format!("{value}{unit}"), format!("1 to {max}{unit}"))
}
