//! The deadline of a call.
//!
//! At the deadline tonic drops the handler and answers `CANCELLED`. The handler ends its work a little
//! earlier, so that the caller gets the reason, with the code `DEADLINE_EXCEEDED`.

use std::{future::Future, time::Duration};

use ringfence_api::{Effect, Error, Reason};
use tokio::time::timeout;
use tonic::Request;

/// The header with the time until the deadline: up to 8 digits and a unit.
const HEADER: &str = "grpc-timeout";

/// The time for the answer to reach the caller: at most this, and at most a tenth of the whole.
const ANSWER_WITHIN: Duration = Duration::from_millis(50);

/// The time that a call may take; none: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Duration>);

impl Deadline {
    /// The deadline of `request`, counted from now.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        let header = request.metadata().get(HEADER);
        let left = header.and_then(|text| parse(text.to_str().ok()?));
        Self(left.map(|left| left - ANSWER_WITHIN.min(left / 10)))
    }

    /// A deadline after `length`.
    pub(crate) fn after(length: Duration) -> Self {
        Self(Some(length))
    }

    /// The time left, or `wait` if that is shorter.
    pub(crate) fn limit(self, wait: Option<Duration>) -> Option<Duration> {
        match (self.0, wait) {
            (Some(left), Some(wait)) => Some(left.min(wait)),
            (left, wait) => left.or(wait),
        }
    }

    /// The same deadline, for work that begins so much later.
    ///
    /// # Errors
    ///
    /// The deadline has passed: the work is not to be begun.
    pub(crate) fn later(self, by: Duration) -> Result<Self, Error> {
        let Some(left) = self.0 else {
            return Ok(self);
        };
        if let Some(left) = left.checked_sub(by).filter(|left| !left.is_zero()) {
            return Ok(Self(Some(left)));
        }
        Err(Error {
            is_retryable: true,
            ..Error::new(
                Reason::Deadline,
                "the deadline of the call passed before this part of it was begun",
            )
        })
    }

    /// Runs `work` until the deadline.
    pub(crate) async fn run<T>(self, work: impl Future<Output = T>) -> Result<T, Error> {
        let Some(left) = self.0 else {
            return Ok(work.await);
        };
        timeout(left, work).await.map_err(|_| {
            let message =
                format!("no result within {left:?}, the time until the deadline of the call");
            Error {
                is_retryable: true,
                effect: Effect::Unknown,
                ..Error::new(Reason::Deadline, message)
            }
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let (end, unit) = text.char_indices().last()?;
    let digits = text.get(..end).filter(|digits| digits.len() <= 8)?;
    let number: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number * 3600)),
        'M' => Some(Duration::from_secs(number * 60)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_leaves_before_the_deadline() {
        let of = |header: &str| {
            let mut request = Request::new(());
            request
                .metadata_mut()
                .insert(HEADER, header.parse().unwrap());
            Deadline::of(&request).0
        };
        assert_eq!(of("2S"), Some(Duration::from_millis(1950)));
        assert_eq!(of("100m"), Some(Duration::from_millis(90)));
        assert_eq!(of("1H"), Some(Duration::from_millis(3_599_950)));
        let long = "9999999999999999999H";
        for malformed in ["", "S", "5", "5x", "123456789S", long, "-1S"] {
            assert_eq!(of(malformed), None, "{malformed}");
        }
        assert_eq!(Deadline::of(&Request::new(())).0, None);
    }

    #[test]
    fn work_that_begins_later_has_less_time() {
        let deadline = Deadline(Some(Duration::from_secs(3)));
        let later = |by| deadline.later(Duration::from_secs(by));
        assert_eq!(later(1), Ok(Deadline(Some(Duration::from_secs(2)))));
        for by in [3, 4] {
            let error = later(by).unwrap_err();
            assert_eq!(error.reason, Reason::Deadline);
            assert!(error.is_retryable && error.effect == Effect::None);
        }
        let by = Duration::from_secs(1);
        assert_eq!(Deadline(None).later(by), Ok(Deadline(None)));
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_at_the_deadline() {
        let deadline = Deadline(Some(Duration::from_secs(1)));
        let error = deadline.run(std::future::pending::<()>()).await;
        assert_eq!(error.unwrap_err().reason, Reason::Deadline);
        assert_eq!(deadline.run(async { 1 }).await, Ok(1));
    }
}
