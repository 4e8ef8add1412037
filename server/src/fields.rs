//! Fields of requests that the API crate cannot check.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringfence_api::Error;
use ringfence_coordinator::name::Label;

/// A length of time.
pub(crate) fn length(
    field: &str,
    length: Option<prost_types::Duration>,
) -> Result<Option<Duration>, Error> {
    let Some(length) = length else {
        return Ok(None);
    };
    match ringfence_api::length(length) {
        Some(length) => Ok(Some(length)),
        None => {
            let mut shown = length.normalized();
            // The least number has no positive one, which its text needs.
            shown.seconds = shown.seconds.max(-i64::MAX);
            Err(Error::invalid(field, shown, "at least 0s"))
        }
    }
}

/// A time, in ms since 1970.
pub(crate) fn time_ms(field: &str, time: Option<prost_types::Timestamp>) -> Result<u64, Error> {
    let invalid = |value: String| Error::invalid(field, value, "a time after 1970");
    let Some(time) = time else {
        return Err(invalid("unset".into()));
    };
    let since = SystemTime::try_from(time)
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_millis()).ok());
    since.ok_or_else(|| invalid(time.to_string()))
}

/// A length of time, for an answer.
pub(crate) fn to_length(length: Duration) -> prost_types::Duration {
    length.try_into().unwrap_or(prost_types::Duration {
        seconds: i64::MAX,
        nanos: 0,
    })
}

/// The name shown to others, as it is kept: a long one is cut at once, for it is held as long as its lock is waited for.
pub(crate) fn label(text: &str) -> String {
    Label::new(text).as_str().to_owned()
}

/// The namespace named in a request.
pub(crate) fn namespace(name: &str) -> &str {
    match name {
        "" => "default",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_length_is_refused() {
        let of = |seconds, nanos| length("lease", Some(prost_types::Duration { seconds, nanos }));
        assert_eq!(length("lease", None), Ok(None));
        assert_eq!(of(1, 500_000_000), Ok(Some(Duration::from_millis(1500))));
        assert!(of(i64::MIN, i32::MIN).is_err() && of(i64::MAX, i32::MAX).is_ok());
        let error = of(-1, 0).unwrap_err();
        assert_eq!(error.message, "lease is -1s, must be at least 0s");
    }

    #[test]
    fn a_time_is_in_whole_milliseconds_since_1970() {
        let at = |seconds, nanos| {
            time_ms(
                "created_at",
                Some(prost_types::Timestamp { seconds, nanos }),
            )
        };
        assert_eq!(at(1_700_000_000, 1_999_999), Ok(1_700_000_000_001));
        assert!(at(-1, 0).is_err() && time_ms("created_at", None).is_err());
    }
}
