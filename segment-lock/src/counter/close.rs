//! An account that is to have no more money.

use super::{Counter, CounterError, patience::Patience};
use crate::{
    VersionedHead,
    segment::{Close, Request},
};

impl Counter {
    /// Closes the account permanently: deposits and transfers to it are refused from now on. Its
    /// money can still be taken out, and held money can be spent or come back.
    ///
    /// # Errors
    ///
    /// A storage that gave no answer: some segments may be closed, and others not. Repeat it.
    pub async fn close(&self) -> Result<(), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let VersionedHead { version, head, .. } = self.finished_head().await?;
            let swapped = match head.is_closed() {
                true => true,
                false => {
                    self.storage
                        .heads
                        .swap(&self.account, version, head.close()?)
                        .await?
                }
            };
            if swapped {
                let close = |index| (index, Request::Close(Close));
                self.ask_all(&head, (0..head.segments()).map(close)).await?;
                return Ok(());
            }
        }
    }
}
