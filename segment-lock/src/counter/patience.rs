//! Bounds the rounds of a call that conflicts with other callers.

use std::time::Duration;

use super::{Counter, CounterError};
use crate::{
    limits::{BUSY_MS_MAX, ROUNDS_MAX},
    segment::Refusal,
};

/// Pause before a frozen segment is asked again, in ms.
const BUSY_WAIT_MS_MAX: u64 = 20;

/// The rounds of one call. Rounds that wait for the freezes of other callers do not count, for a limited time.
#[derive(Debug, Default)]
pub(super) struct Patience {
    rounds: u32,
    busy_ms: u64,
}

impl Patience {
    /// Begins a round. Returns the number of earlier rounds.
    pub(super) fn round(&mut self) -> Result<u32, CounterError> {
        let before = self.rounds;
        if before == ROUNDS_MAX {
            return Err(CounterError::Contended { rounds: before });
        }
        self.rounds += 1;
        Ok(before)
    }

    /// Waits for the caller that has frozen a segment.
    async fn wait(&mut self, retry_after_ms: u64) {
        // It may end its freeze early.
        let wait_ms = retry_after_ms.min(BUSY_WAIT_MS_MAX);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        self.busy_ms += wait_ms;
        if self.busy_ms <= BUSY_MS_MAX {
            self.rounds -= 1;
        }
    }
}

impl Counter {
    /// Turns a temporary refusal into a reason for another round, and any other refusal or error into the error.
    pub(super) async fn pass(
        &self,
        error: CounterError,
        patience: &mut Patience,
    ) -> Result<(), CounterError> {
        match error {
            CounterError::Refused(Refusal::Layout { generation }) => {
                Box::pin(self.learn_manifest(generation))
                    .await
                    .map_err(CounterError::aside)?;
            }
            CounterError::Refused(Refusal::Busy { retry_after_ms }) => {
                patience.wait(retry_after_ms).await;
            }
            // Since this process read the manifest, the account may have been created again.
            error @ CounterError::Lost { .. } => {
                if !Box::pin(self.is_another()).await? {
                    return Err(error);
                }
            }
            error => return Err(error),
        }
        Ok(())
    }
}
