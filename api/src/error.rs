//! Errors as gRPC statuses, and back.

use std::time::Duration;

use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::{
    Effect, Reason, length,
    v1::{ErrorDetail, HeldBy, InvalidInput},
};

/// The name of [`ErrorDetail`] in a status.
const TYPE_URL: &str = "type.googleapis.com/ringfence.v1.ErrorDetail";

/// Whose reasons they are, in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "ringfence";

/// Bytes of a message, a value or a limit, at most: in a status they are headers, for which clients have little room.
const TEXT_BYTES_MAX: usize = 500;

/// The reason why a call failed, and its consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The reason. It decides on the status code.
    pub reason: Reason,
    /// The message for people.
    pub message: String,
    /// Whether the same call may succeed if it is repeated.
    pub is_retryable: bool,
    /// Whether the call may have taken effect.
    pub effect: Effect,
    /// The earliest time to repeat the call, if it is known.
    pub retry_after: Option<Duration>,
    /// The field that cannot be used, if the reason is [`Reason::InvalidInput`].
    pub input: Option<Box<Input>>,
    /// The holder of the lock, if that is the reason, or the reason for the wait.
    pub held_by: Option<Box<HeldBy>>,
}

/// A field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The field, by its name in the request.
    pub field: String,
    /// The refused value, or its length.
    pub value: String,
    /// The allowed values.
    pub limit: String,
}

impl Error {
    /// An error of a call that had no effect. A repeat cannot succeed.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: cut(message.into()),
            is_retryable: false,
            effect: Effect::None,
            retry_after: None,
            input: None,
            held_by: None,
        }
    }

    /// A field that cannot be used. A repeat cannot succeed; the call had no effect.
    pub fn invalid(field: &str, value: impl ToString, limit: impl ToString) -> Self {
        let input = Input {
            field: field.to_owned(),
            value: cut(value.to_string()),
            limit: cut(limit.to_string()),
        };
        let message = format!(
            "{} is {}, must be {}",
            input.field, input.value, input.limit
        );
        Self {
            input: Some(Box::new(input)),
            ..Self::new(Reason::InvalidInput, message)
        }
    }

    /// The error in `status`. A status without details came from another source than Ringfence, a
    /// proxy for example: its code decides.
    pub fn from_status(status: &Status) -> Self {
        match detail(status) {
            Some(detail) => Self::from_detail(detail, status.message().to_owned()),
            None => Self {
                is_retryable: match status.code() {
                    // A connection that breaks ends its calls with the last two.
                    Code::Unavailable
                    | Code::DeadlineExceeded
                    | Code::Cancelled
                    | Code::Unknown => true,
                    // One that the other side closes for want of an answer ends them with this.
                    Code::Internal => std::error::Error::source(status).is_some(),
                    _ => false,
                },
                effect: Effect::Unknown,
                ..Self::new(
                    match status.code() {
                        Code::DeadlineExceeded => Reason::Deadline,
                        _ => Reason::Unspecified,
                    },
                    with_cause(status),
                )
            },
        }
    }
}

/// The message of `status`, with its first cause, if a connection has it: a refused certificate, for example.
fn with_cause(status: &Status) -> String {
    let mut error: &dyn std::error::Error = status;
    while let Some(source) = error.source() {
        error = source;
    }
    let (message, cause) = (status.message(), error.to_string());
    match std::error::Error::source(status) {
        Some(_) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message.to_owned(),
    }
}

impl Error {
    /// The error that `detail` describes.
    pub fn from_detail(detail: ErrorDetail, message: String) -> Self {
        Self {
            reason: detail.reason(),
            message,
            is_retryable: detail.retryable,
            effect: match detail.effect() {
                Effect::Unspecified => Effect::Unknown,
                effect => effect,
            },
            retry_after: detail.retry_after.and_then(length),
            input: detail.invalid_input.map(|input| {
                Box::new(Input {
                    field: input.field,
                    value: input.value,
                    limit: input.limit,
                })
            }),
            held_by: detail.held_by.map(Box::new),
        }
    }
}

impl From<&Error> for ErrorDetail {
    fn from(error: &Error) -> Self {
        Self {
            reason: error.reason.into(),
            retryable: error.is_retryable,
            effect: error.effect.into(),
            retry_after: error.retry_after.and_then(|length| length.try_into().ok()),
            invalid_input: error.input.as_deref().map(|input| InvalidInput {
                field: input.field.clone(),
                value: input.value.clone(),
                limit: input.limit.clone(),
            }),
            held_by: error.held_by.as_deref().cloned(),
        }
    }
}

/// A part of an error, without its end if it is long.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let mut ends = (0..=TEXT_BYTES_MAX).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = code(error.reason);
        let mut details = vec![any(TYPE_URL, &ErrorDetail::from(&error))];
        details.extend(for_generic_clients(&error));
        let whole = pb::Status {
            code: code as i32,
            message: error.message,
            details,
        };
        let bytes = whole.encode_to_vec();
        Self::with_details(code, whole.message, bytes.into())
    }
}

/// The same as [`google.rpc`](https://cloud.google.com/apis/design/errors#error_model) has it, for clients that know nothing of
/// Ringfence.
fn for_generic_clients(error: &Error) -> impl Iterator<Item = Any> {
    let reason = error.reason.as_str_name();
    let info = pb::ErrorInfo {
        reason: reason.trim_start_matches("ERROR_REASON_").to_owned(),
        domain: DOMAIN.to_owned(),
        ..pb::ErrorInfo::default()
    };
    let retry = error.retry_after.map(|after| pb::RetryInfo {
        retry_delay: after.try_into().ok(),
    });
    let input = error.input.as_deref().map(|input| pb::BadRequest {
        field_violations: vec![pb::bad_request::FieldViolation {
            field: input.field.clone(),
            description: format!("must be {}", input.limit),
            ..pb::bad_request::FieldViolation::default()
        }],
    });
    let info = any("type.googleapis.com/google.rpc.ErrorInfo", &info);
    let retry = retry.map(|its| any("type.googleapis.com/google.rpc.RetryInfo", &its));
    let input = input.map(|its| any("type.googleapis.com/google.rpc.BadRequest", &its));
    [Some(info), retry, input].into_iter().flatten()
}

fn any(type_url: &str, detail: &impl Message) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: detail.encode_to_vec(),
    }
}

fn detail(status: &Status) -> Option<ErrorDetail> {
    let whole = pb::Status::decode(status.details()).ok()?;
    let mut details = whole.details.into_iter();
    let detail = details.find(|detail| detail.type_url == TYPE_URL)?;
    ErrorDetail::decode(&*detail.value).ok()
}

/// The status code of `reason`. Clients and proxies may repeat `Unavailable` by themselves.
fn code(reason: Reason) -> Code {
    match reason {
        Reason::InvalidInput => Code::InvalidArgument,
        Reason::Deadline | Reason::TimedOut => Code::DeadlineExceeded,
        Reason::Stopping | Reason::ShardUnavailable | Reason::Moving | Reason::Recovering => {
            Code::Unavailable
        }
        Reason::OutOfMemory
        | Reason::TooManyWaiters
        | Reason::TooManyHeld
        | Reason::TooManyIds
        | Reason::RateLimited => Code::ResourceExhausted,
        Reason::Held | Reason::TooLate | Reason::Contended | Reason::TransferUnfinished => {
            Code::Aborted
        }
        Reason::NoAccount | Reason::UnknownReservation => Code::NotFound,
        Reason::AccountExists | Reason::IdConflict => Code::AlreadyExists,
        Reason::OutOfRange => Code::OutOfRange,
        Reason::ShardUnusable
        | Reason::ResizeRefused
        | Reason::Foreign
        | Reason::OtherKind
        | Reason::LockLost
        | Reason::Insufficient
        | Reason::Cancelled
        | Reason::TransferRefused
        | Reason::OtherUnit
        | Reason::NotDeletable
        | Reason::AccountClosed
        | Reason::IdTooOld
        | Reason::IdInFuture => Code::FailedPrecondition,
        Reason::SegmentLost => Code::DataLoss,
        Reason::Internal => Code::Internal,
        Reason::Unauthenticated => Code::Unauthenticated,
        Reason::NotAllowed => Code::PermissionDenied,
        Reason::Unspecified => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    /// Every reason that the proto has.
    fn reasons() -> impl Iterator<Item = Reason> {
        (0..=100).filter_map(|number| Reason::try_from(number).ok())
    }

    #[test]
    fn the_end_of_a_connection_may_pass_and_an_internal_error_of_the_other_side_does_not() {
        let mut status = Status::internal("h2 protocol error");
        assert!(!Error::from_status(&status).is_retryable);
        status.set_source(std::sync::Arc::new(std::io::Error::other("GOAWAY")));
        let error = Error::from_status(&status);
        assert!(error.is_retryable && error.effect == Effect::Unknown);
    }

    #[test]
    fn every_error_survives_the_way_through_a_status() {
        let effects = [Effect::None, Effect::Unknown];
        let waits = [None, Some(Duration::from_millis(1500))];
        let mut seen = 0;
        for reason in reasons() {
            for effect in effects {
                for retry_after in waits {
                    let error = Error {
                        reason,
                        message: format!("{reason:?}"),
                        is_retryable: effect == Effect::None,
                        effect,
                        retry_after,
                        input: (reason == Reason::InvalidInput).then(|| {
                            Box::new(Input {
                                field: "lease".into(),
                                value: "31s".into(),
                                limit: "at most 30s".into(),
                            })
                        }),
                        held_by: (reason == Reason::Held).then(|| {
                            Box::new(HeldBy {
                                label: "host/1".into(),
                                remaining: Some(prost_types::Duration::default()),
                                ahead: Some(2),
                            })
                        }),
                    };
                    let status = Status::from(error.clone());
                    assert_ne!(status.code(), Code::Ok);
                    assert_eq!(Error::from_status(&status), error);
                    seen += 1;
                }
            }
        }
        assert!(seen >= 4 * 32, "{seen}");
    }

    #[test]
    fn a_status_of_another_source_may_have_taken_effect() {
        let error = Error::from_status(&Status::unavailable("no route to host"));
        assert_eq!(error.reason, Reason::Unspecified);
        assert!(error.is_retryable && error.effect == Effect::Unknown);
        let broken = [
            Status::cancelled("operation was canceled"),
            Status::unknown("transport error"),
        ];
        for status in broken {
            let error = Error::from_status(&status);
            assert!(error.is_retryable && error.effect == Effect::Unknown);
        }
        let error = Error::from_status(&Status::deadline_exceeded("late"));
        assert_eq!(error.reason, Reason::Deadline);
        assert!(!Error::from_status(&Status::internal("?")).is_retryable);
    }

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("transport error")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_of_a_connection_has_its_cause() {
        let cause = Outer(std::io::Error::other("certificate required"));
        let error = Error::from_status(&Status::from_error(Box::new(cause)));
        assert_eq!(error.message, "transport error: certificate required");
    }

    #[test]
    fn a_long_value_is_cut() {
        let status = Status::from(Error::invalid("id", "é".repeat(40_000), "short"));
        assert!(status.message().len() + status.details().len() < 4 * TEXT_BYTES_MAX);
        let input = Error::from_status(&status).input.unwrap();
        assert!(input.value.starts_with("éé") && input.value.ends_with("é…"));
    }

    #[test]
    fn clients_that_know_nothing_of_ringfence_read_field_reason_and_pause() {
        let error = Error {
            retry_after: Some(Duration::from_millis(1500)),
            ..Error::invalid("lease", "31s", "at most 30s")
        };
        let details = Status::from(error).get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((&*info.reason, &*info.domain), ("INVALID_INPUT", DOMAIN));
        let retry = details.retry_info().unwrap();
        assert_eq!(retry.retry_delay, Some(Duration::from_millis(1500)));
        let [violation] = &details.bad_request().unwrap().field_violations[..] else {
            panic!("{details:?}");
        };
        let read = (&*violation.field, &*violation.description);
        assert_eq!(read, ("lease", "must be at most 30s"));
    }

    #[test]
    fn bad_input_names_the_field_the_value_and_the_limit() {
        let error = Error::invalid("segments", 0, "1 to 1024");
        assert_eq!(error.message, "segments is 0, must be 1 to 1024");
        assert_eq!(Status::from(error).code(), Code::InvalidArgument);
    }
}
