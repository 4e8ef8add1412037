//! How long a call goes on that others disturb.

use std::time::Duration;

use super::{Counter, CounterError};
use crate::{
    limits::{BUSY_MS_MAX, ROUNDS_MAX},
    segment::Refusal,
};

/// A frozen segment is asked again after this, in ms.
const BUSY_WAIT_MS_MAX: u64 = 20;

/// Rounds of one call. Those that wait for others' freezes do not count, for a while.
#[derive(Debug, Default)]
pub(super) struct Patience {
    rounds: u32,
    busy_ms: u64,
}

impl Patience {
    /// Begins a round; answers how many there were before.
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
        // It may thaw before its time.
        let wait_ms = retry_after_ms.min(BUSY_WAIT_MS_MAX);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        self.busy_ms += wait_ms;
        if self.busy_ms <= BUSY_MS_MAX {
            self.rounds -= 1;
        }
    }
}

impl Counter {
    /// Makes of a refusal that passes a reason to try again; of the others, and of errors, the
    /// error.
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
            error => return Err(error),
        }
        Ok(())
    }
}
