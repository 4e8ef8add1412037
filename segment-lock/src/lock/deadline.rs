//! How long a call may take.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::SegmentedLockError;
use crate::Effect;

/// When a call is given up, if ever. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<(Duration, Instant)>);

impl Deadline {
    /// `length` from now; never, if there is none, or if it is longer than a clock can count.
    pub(super) fn within(length: Option<Duration>) -> Self {
        Self(length.and_then(|length| Some((length, Instant::now().checked_add(length)?))))
    }

    /// The rest of the time; `None` if nothing is left.
    pub(super) fn left(self) -> Option<Duration> {
        let (_, at) = self.0?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// The result of `work`, or that the time was over, with `effect`.
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
