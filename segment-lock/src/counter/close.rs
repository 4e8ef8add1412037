//! An account that is to have no more money.

use super::{Counter, CounterError, patience::Patience};
use crate::{
    VersionedManifest,
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
            let VersionedManifest {
                version, manifest, ..
            } = self.finished_manifest().await?;
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
