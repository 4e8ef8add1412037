//! Errors of locks and counters, as errors of the API.
//!
//! The enums of the library may grow. A new variant fails the lint below until it has a reason here.
//! In a build without that check, its reason is `Unspecified`, and the call may have taken effect.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Debug;

use axum::http::StatusCode;
use ringfence_api::{Error, Reason, v1::HeldBy};
use ringfence_client::{
    AcquireError, CounterFault, Effect, Failure, LatchError, NameError, ReshapeError, RingError,
    ShardError, TopologyError,
    counter::{
        CounterError, LegsError, ManifestError, NameError as CounterNameError, TermsError,
        limits::{AMOUNT_MAX, IDS_MAX, LABELS_MAX, RESERVED_ENDS, SEGMENTS_MAX},
        segment::Refusal,
    },
    limits::{HOLD_MAX, KEY_BYTES_MAX, LEASE_MIN, NAMESPACE_BYTES_MAX},
};

use tonic::Code;

use crate::fields::to_length;

/// `error`, for `reason`, with its consequences.
fn of(reason: Reason, error: &dyn Failure) -> Error {
    Error {
        is_retryable: error.is_retryable(),
        effect: match error.effect() {
            Effect::None if reason != Reason::Unspecified => ringfence_api::Effect::None,
            Effect::None | Effect::Unknown => ringfence_api::Effect::Unknown,
        },
        retry_after: error.retry_after(),
        ..Error::new(reason, error.to_string())
    }
}

/// The coordinator stops: another one may serve the call.
pub(crate) fn stopping() -> Error {
    Error {
        is_retryable: true,
        ..Error::new(Reason::Stopping, "this coordinator stops: use another one")
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
        NameError::Prefix(_) => of(Reason::Internal, error),
        _ => of(Reason::Unspecified, error),
    }
}

fn key(length: usize) -> Error {
    let value = format!("{length} bytes long");
    Error::invalid("key", value, format!("1 to {KEY_BYTES_MAX}"))
}

/// A lock that was not granted, or a call about one that failed.
pub(crate) fn lock(error: &AcquireError) -> Error {
    let at_least = format!("at least {LEASE_MIN:?}");
    let length_of = |field, length: &dyn Debug, limit: String| {
        Error::invalid(field, format!("{length:?}"), limit)
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
        AcquireError::Replicated {
            namespace,
            replicas,
        } => {
            return Error::invalid(
                "mode",
                format!("a share of a key of {namespace}, whose locks have {replicas} replicas"),
                "the whole key",
            );
        }
        AcquireError::LeaseTooShort(lease) => return length_of("lease", lease, at_least),
        AcquireError::HoldTooShort(length) => return length_of("hold_for", length, at_least),
        AcquireError::HoldTooLong(length) => {
            return length_of("hold_for", length, format!("at most {HOLD_MAX:?}"));
        }
        AcquireError::Closed => return stopping(),
        AcquireError::Held { .. } => Reason::Held,
        AcquireError::Moving { .. } | AcquireError::Moved | AcquireError::Declaring(_) => {
            Reason::Moving
        }
        AcquireError::Grace { .. } => Reason::Recovering,
        AcquireError::TimedOut { .. } => Reason::TimedOut,
        AcquireError::TooManyWaiters { .. } => Reason::TooManyWaiters,
        AcquireError::TooManyHeld(_) => Reason::TooManyHeld,
        AcquireError::OutOfMemory(_) => Reason::OutOfMemory,
        AcquireError::NoTokens(_) | AcquireError::NoMajority { .. } => Reason::ShardUnavailable,
        AcquireError::Foreign(_) => Reason::Foreign,
        AcquireError::OtherKind { .. } => Reason::OtherKind,
        AcquireError::TooLate => Reason::TooLate,
        AcquireError::Shard(error) => shard(error),
        // The service has no owners that enter again, and has checked the permits.
        AcquireError::TooManyEntries(_)
        | AcquireError::Permits { .. }
        | AcquireError::Coordinator(_) => Reason::Internal,
        // It acquires for no owner.
        AcquireError::Upgrade => Reason::Internal,
        _ => Reason::Unspecified,
    };
    Error {
        held_by: held_by(error).map(Box::new),
        ..of(reason, error)
    }
}

fn held_by(error: &AcquireError) -> Option<HeldBy> {
    if let AcquireError::TimedOut { because, .. } = error {
        return held_by(because);
    }
    let AcquireError::Held {
        holder,
        remaining,
        ahead,
    } = error
    else {
        return None;
    };
    Some(HeldBy {
        label: holder.to_string(),
        remaining: Some(to_length(*remaining)),
        ahead: *ahead,
    })
}

fn shard(error: &ShardError) -> Reason {
    match error {
        ShardError::Unreachable { .. }
        | ShardError::Overloaded { .. }
        | ShardError::NoReply { .. }
        | ShardError::Unarmed
        | ShardError::Stale { .. } => Reason::ShardUnavailable,
        ShardError::Unusable { .. } => Reason::ShardUnusable,
        ShardError::Refused { .. } => Reason::Internal,
        _ => Reason::Unspecified,
    }
}

/// A call on a counter that failed.
pub(crate) fn counter(error: &CounterError) -> Error {
    let reason = match error {
        CounterError::Name(error) => return counter_name(error),
        CounterError::Legs(error) => return legs(error),
        CounterError::Insufficient => Reason::Insufficient,
        CounterError::Cancelled => Reason::Cancelled,
        CounterError::UnknownReservation => Reason::UnknownReservation,
        CounterError::TransferRefused { .. } => Reason::TransferRefused,
        CounterError::TransferUnfinished { .. } => Reason::TransferUnfinished,
        CounterError::NoAccount { .. } | CounterError::NoDestination { .. } => Reason::NoAccount,
        CounterError::OtherUnit { .. } => Reason::OtherUnit,
        CounterError::AccountExists { .. } => Reason::AccountExists,
        CounterError::NotEmpty { .. } => Reason::NotDeletable,
        CounterError::Lost { .. } => Reason::SegmentLost,
        CounterError::Contended { .. } => Reason::Contended,
        CounterError::Manifest(ManifestError::Segments { value }) => {
            return Error::invalid("segments", value, format!("1 to {SEGMENTS_MAX}"));
        }
        CounterError::Manifest(ManifestError::Ceiling { value }) => {
            return Error::invalid("segments", value, "1: the account has a ceiling");
        }
        CounterError::Manifest(ManifestError::Labels { count }) => {
            return Error::invalid("labels", count, format!("at most {LABELS_MAX}"));
        }
        CounterError::Manifest(ManifestError::Label(error)) => return counter_name(error),
        CounterError::Manifest(ManifestError::Terms(error)) => return terms(error),
        CounterError::Manifest(error) => manifest(error),
        CounterError::Refused(Refusal::DeadlineTooLate {
            deadline_ms,
            max_ms,
        }) => {
            let limit = format!("at most {max_ms} ms for a request of that time");
            return Error::invalid("deadline", format!("{deadline_ms} ms"), limit);
        }
        CounterError::Refused(Refusal::AboveReserved { amount, reserved }) => {
            let limit = format!("at most {reserved}: so much is reserved");
            return Error::invalid("amount", amount, limit);
        }
        CounterError::Refused(refusal) => refused(refusal),
        CounterError::Storage(storage) => match storage.source.downcast_ref() {
            // Another coordinator is not closed.
            Some(CounterFault::Closed) => {
                return Error {
                    is_retryable: true,
                    ..of(Reason::Stopping, error)
                };
            }
            Some(fault) => faulted(fault),
            None => Reason::Internal,
        },
        // Its client reaches the shards itself.
        CounterError::Service(_) | CounterError::Unexpected { .. } => Reason::Internal,
        _ => Reason::Unspecified,
    };
    of(reason, error)
}

/// A call on a latch that failed.
pub(crate) fn latch(error: &LatchError) -> Error {
    let reason = match error {
        LatchError::Count(count) => {
            return Error::invalid("count", count, format!("1 to {IDS_MAX}"));
        }
        LatchError::Counter(error) => return counter(error),
        LatchError::AlreadySet(_) => Reason::AccountExists,
        LatchError::NotSet(_) => Reason::NoAccount,
        LatchError::Lost(_) => Reason::SegmentLost,
        LatchError::TimedOut { .. } => Reason::TimedOut,
        _ => Reason::Unspecified,
    };
    of(reason, error)
}

/// Apart from invalid input.
fn manifest(error: &ManifestError) -> Reason {
    match error {
        ManifestError::Open | ManifestError::CreditLine { .. } => Reason::NotDeletable,
        ManifestError::Segments { .. }
        | ManifestError::Ceiling { .. }
        | ManifestError::Labels { .. }
        | ManifestError::Label(_)
        | ManifestError::Terms(_)
        | ManifestError::TooManyLayouts
        | ManifestError::Planned { .. }
        | ManifestError::NotPlanned { .. }
        | ManifestError::Malformed { .. } => Reason::Internal,
        _ => Reason::Unspecified,
    }
}

fn refused(refusal: &Refusal) -> Reason {
    match refusal {
        Refusal::Missing | Refusal::Doubtful => Reason::SegmentLost,
        Refusal::Layout { .. } | Refusal::Busy { .. } => Reason::Contended,
        Refusal::Conflict => Reason::IdConflict,
        Refusal::TooOld { .. } | Refusal::IdExpired { .. } => Reason::IdTooOld,
        Refusal::IdInFuture { .. } => Reason::IdInFuture,
        Refusal::TooManyIds { .. } => Reason::TooManyIds,
        Refusal::Full { .. } => Reason::OutOfRange,
        Refusal::Closed => Reason::AccountClosed,
        Refusal::DeadlineTooLate { .. } | Refusal::AboveReserved { .. } | Refusal::NoLog => {
            Reason::InvalidInput
        }
        Refusal::ClocksDiffer { .. } => Reason::ShardUnusable,
        _ => Reason::Unspecified,
    }
}

fn faulted(fault: &CounterFault) -> Reason {
    match fault {
        CounterFault::Shard { error, .. } => shard(error),
        CounterFault::Moves { .. } => Reason::Moving,
        CounterFault::OutOfMemory { .. } => Reason::OutOfMemory,
        CounterFault::Foreign { .. } => Reason::Foreign,
        CounterFault::LocksOnly { .. } | CounterFault::NotOnDisk { .. } => Reason::ShardUnusable,
        CounterFault::TooFewReplicas { .. } => Reason::ShardUnavailable,
        CounterFault::Replicated { .. } => Reason::InvalidInput,
        CounterFault::Closed => Reason::Stopping,
        CounterFault::NoShards
        | CounterFault::Name(_)
        | CounterFault::Manifest(_)
        | CounterFault::Unexpected { .. } => Reason::Internal,
        _ => Reason::Unspecified,
    }
}

/// A change of the ring that was refused, or a resize that failed.
pub(crate) fn reshape(error: &ReshapeError) -> Error {
    let reason = match error {
        ReshapeError::Refused(_) => Reason::ResizeRefused,
        ReshapeError::Address(_) | ReshapeError::OtherKind(_) => {
            let limit = "the URL of a server of this ring's kind";
            return Error::invalid("url", error, limit);
        }
        ReshapeError::Shard(error) => shard(error),
        ReshapeError::Topology(error) => return topology(error),
        _ => Reason::Unspecified,
    };
    of(reason, error)
}

/// A call that the topology's store refused, or did not answer.
pub(crate) fn topology(error: &TopologyError) -> Error {
    let reason = match error.is_retryable() {
        true => Reason::ShardUnavailable,
        false => Reason::ShardUnusable,
    };
    of(reason, error)
}

/// The id or the weight of a shard that was refused.
pub(crate) fn ring(field: &str, value: impl ToString, error: &RingError) -> Error {
    Error::invalid(field, value, error)
}

/// The name of an account or of a request that was refused.
pub(crate) fn counter_name(error: &CounterNameError) -> Error {
    match error {
        CounterNameError::Len {
            field,
            len,
            min,
            max,
        } => Error::invalid(
            field,
            format!("{len} bytes long"),
            format!("{min} to {max}"),
        ),
        CounterNameError::Reserved { field, name } => Error::invalid(
            field,
            name,
            format!("without an end as in {}", RESERVED_ENDS.join(", ")),
        ),
    }
}

/// An amount that was refused.
pub(crate) fn amount(value: i64) -> Error {
    Error::invalid("amount", value, format!("1 to {AMOUNT_MAX}"))
}

/// Legs that were refused.
pub(crate) fn legs(error: &LegsError) -> Error {
    Error::new(Reason::InvalidInput, error.to_string())
}

/// A term of an account that was refused.
fn terms(error: &TermsError) -> Error {
    let TermsError {
        field,
        value,
        min,
        max,
    } = error;
    let (field, unit) = match field.strip_suffix("_ms") {
        Some(length) => (length, " ms"),
        None => (*field, ""),
    };
    let limit = format!("{min} to {max}{unit}");
    Error::invalid(field, format!("{value}{unit}"), limit)
}

/// The status of HTTP that `google.rpc.Code` gives to `code`.
pub(crate) fn http(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Aborted | Code::AlreadyExists => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded | Code::Cancelled => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal | Code::Unknown | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringfence_client::{
        LockKind, Replicas,
        counter::{Account, Remainder, RequestId, StorageError, Unit},
    };
    use ringfence_coordinator::name::Namespace;

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    fn errors_of_holders() -> [(AcquireError, Reason); 2] {
        let held = AcquireError::Held {
            holder: ringfence_client::Label::new("host/1"),
            remaining: SHORT,
            ahead: None,
        };
        let other_kind = AcquireError::OtherKind {
            asked: LockKind::Mutex,
            held: LockKind::Semaphore,
        };
        [(held, Reason::Held), (other_kind, Reason::OtherKind)]
    }

    fn every_lock_error() -> Vec<(AcquireError, Reason)> {
        let shard = || "a".to_owned();
        let reason = || "refused".to_owned();
        let grace = AcquireError::Grace {
            shard: shard(),
            new: false,
            retry_after: SHORT,
        };
        let too_long = AcquireError::LeaseTooLong {
            lease: SHORT,
            max: SHORT,
        };
        let replicated = AcquireError::Replicated {
            namespace: Namespace::unnamed().clone(),
            replicas: Replicas::Three,
        };
        let waiters = AcquireError::TooManyWaiters { retry_after: SHORT };
        let timed_out = AcquireError::TimedOut {
            waited: SHORT,
            because: Box::new(grace.clone()),
        };
        let no_majority = AcquireError::NoMajority {
            replicas: Replicas::Three,
            shards: vec![(ringfence_client::ShardId::new("a").unwrap(), grace.clone())],
        };
        let shards = [
            (
                ShardError::Unreachable { reason: reason() },
                Reason::ShardUnavailable,
            ),
            (
                ShardError::NoReply { reason: reason() },
                Reason::ShardUnavailable,
            ),
            (ShardError::Unarmed, Reason::ShardUnavailable),
            (
                ShardError::Unusable { reason: reason() },
                Reason::ShardUnusable,
            ),
        ];
        let shards = shards.map(|(error, reason)| (AcquireError::Shard(error), reason));
        let mut all = vec![
            (NameError::KeyEmpty.into(), Reason::InvalidInput),
            (
                NameError::Namespace("A".into()).into(),
                Reason::InvalidInput,
            ),
            (too_long, Reason::InvalidInput),
            (replicated, Reason::InvalidInput),
            (AcquireError::LeaseTooShort(SHORT), Reason::InvalidInput),
            (AcquireError::HoldTooShort(SHORT), Reason::InvalidInput),
            (AcquireError::HoldTooLong(SHORT), Reason::InvalidInput),
            (AcquireError::Moving { shard: shard() }, Reason::Moving),
            (grace, Reason::Recovering),
            (timed_out, Reason::TimedOut),
            (waiters, Reason::TooManyWaiters),
            (AcquireError::TooManyHeld(1), Reason::TooManyHeld),
            (AcquireError::Moved, Reason::Moving),
            (AcquireError::OutOfMemory(shard()), Reason::OutOfMemory),
            (AcquireError::NoTokens(shard()), Reason::ShardUnavailable),
            (no_majority, Reason::ShardUnavailable),
            (AcquireError::Foreign(shard()), Reason::Foreign),
            (AcquireError::TooLate, Reason::TooLate),
        ];
        all.extend(shards);
        all.extend(errors_of_holders());
        all
    }

    #[test]
    fn errors_of_locks_keep_their_consequences() {
        for (error, reason) in every_lock_error() {
            let told = lock(&error);
            assert_eq!(told.reason, reason, "{error}");
            keeps(&told, &error);
            assert_eq!(told.input.is_some(), reason == Reason::InvalidInput);
        }
        // Another coordinator is not closed.
        let told = lock(&AcquireError::Closed);
        assert!(told.reason == Reason::Stopping && told.is_retryable);
        let closed = StorageError::from(CounterFault::Closed);
        let told = counter(&closed.into());
        assert!(told.reason == Reason::Stopping && told.is_retryable);
        assert_eq!(told.effect, ringfence_api::Effect::Unknown);
    }

    fn errors_of_deletions() -> [(CounterError, Reason); 3] {
        let not_empty = CounterError::NotEmpty {
            account: Account::new("coins").unwrap(),
            remainder: Box::new(Remainder {
                ledger: 5,
                held: 0,
                unfinished: 0,
            }),
        };
        let errors = [
            not_empty,
            ManifestError::Open.into(),
            ManifestError::CreditLine { segments: 2 }.into(),
        ];
        errors.map(|error| (error, Reason::NotDeletable))
    }

    #[test]
    fn errors_of_counters_keep_their_consequences() {
        let account = || Account::new("coins").unwrap();
        let errors = [
            (CounterError::Insufficient, Reason::Insufficient),
            (CounterError::Cancelled, Reason::Cancelled),
            (CounterError::UnknownReservation, Reason::UnknownReservation),
            (
                CounterError::TransferRefused { to: account() },
                Reason::TransferRefused,
            ),
            (
                CounterError::NoDestination { to: account() },
                Reason::NoAccount,
            ),
            (
                CounterError::OtherUnit {
                    to: account(),
                    units: Box::new(("EUR".parse().unwrap(), Unit::NONE)),
                },
                Reason::OtherUnit,
            ),
            (
                CounterError::NoAccount { account: account() },
                Reason::NoAccount,
            ),
            (
                CounterError::AccountExists { account: account() },
                Reason::AccountExists,
            ),
            (CounterError::Contended { rounds: 3 }, Reason::Contended),
            (
                RequestId::new(1, "").unwrap_err().into(),
                Reason::InvalidInput,
            ),
            (Refusal::Missing.into(), Reason::SegmentLost),
            (Refusal::Doubtful.into(), Reason::SegmentLost),
            (Refusal::Layout { generation: 2 }.into(), Reason::Contended),
            (
                Refusal::Busy { retry_after_ms: 5 }.into(),
                Reason::Contended,
            ),
            (Refusal::Conflict.into(), Reason::IdConflict),
            (Refusal::TooOld { mark_ms: 1 }.into(), Reason::IdTooOld),
            (Refusal::IdExpired { since_ms: 1 }.into(), Reason::IdTooOld),
            (Refusal::Closed.into(), Reason::AccountClosed),
        ];
        for (error, reason) in errors.into_iter().chain(errors_of_deletions()) {
            let unfinished = CounterError::TransferUnfinished {
                because: Box::new(error.clone()),
            };
            let told = counter(&error);
            assert_eq!(told.reason, reason, "{error}");
            keeps(&told, &error);
            let told = counter(&unfinished);
            assert_eq!(told.reason, Reason::TransferUnfinished);
            keeps(&told, &unfinished);
        }
    }

    /// No test can make a variant of a later release: this is what its match arm does.
    #[test]
    fn an_error_without_a_reason_may_have_taken_effect() {
        let error = AcquireError::TooManyHeld(1);
        assert_eq!(error.effect(), Effect::None);
        let told = of(Reason::Unspecified, &error);
        assert_eq!(told.effect, ringfence_api::Effect::Unknown);
    }

    fn keeps(told: &Error, error: &dyn Failure) {
        let may_be_applied = told.effect == ringfence_api::Effect::Unknown;
        assert_eq!(may_be_applied, error.effect() == Effect::Unknown, "{error}");
        assert_eq!(told.is_retryable, error.is_retryable(), "{error}");
        assert_eq!(told.retry_after, error.retry_after(), "{error}");
    }
}
