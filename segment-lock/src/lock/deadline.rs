//! The deadline of a call.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::SegmentedLockError;
use crate::Effect;

/// The time when a call gives up, if any. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<(Duration, Instant)>);

impl Deadline {
    /// `length` from now; no deadline if there is none, or if it is longer than a clock can count.
    pub(super) fn within(length: Option<Duration>) -> Self {
        Self(length.and_then(|length| Some((length, Instant::now().checked_add(length)?))))
    }

    /// The rest of the time; `None` if nothing is left.
    pub(super) fn left(self) -> Option<Duration> {
        let (_, at) = self.0?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// The result of `work`; or, after the deadline, an error with `effect`.
    pub(super) async fn bounds<T>(
        self,
        effect: Effect,
        work: impl Future<Output = Result<T, SegmentedLockError>>,
    ) -> Result<T, SegmentedLockError> {
        let Some((waited, at)) = self.0 else {
            return work.await;
        };
        match timeout_at(at, work).await {
            Ok(done) => done,
            Err(_) => Err(SegmentedLockError::TimedOut { waited, effect }),
        }
    }
}
