//! Closes an account.

use super::{Counter, CounterError, patience::Patience};
use crate::{
    VersionedManifest,
    segment::{Close, Request},
};

impl Counter {
    /// Closes the account permanently: it refuses deposits and transfers from now on. Its money can still be taken out,
    /// and held money can be spent or given back.
    ///
    /// # Errors
    ///
    /// The storage gave no answer: some segments may be closed, and others not. Repeat the call.
    pub async fn close(&self) -> Result<(), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let VersionedManifest {
                version, manifest, ..
            } = self.finished_manifest(0).await?;
            let swapped = match manifest.is_closed() {
                true => true,
                false => {
                    self.storage
                        .manifests
                        .swap(&self.account, version, manifest.close()?)
                        .await?
                }
            };
            if swapped {
                let close = |index| (index, Request::Close(Close));
                self.ask_all(&manifest, (0..manifest.segments()).map(close))
                    .await?;
                return Ok(());
            }
        }
    }
}
