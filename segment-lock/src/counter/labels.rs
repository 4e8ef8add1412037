//! Labels of an account: names and values that have no meaning here.

use std::collections::BTreeMap;

use super::{Counter, CounterError, patience::Patience};

impl Counter {
    /// Sets labels, and removes those that are set to `None`. The others stay. A repeat has no second effect.
    ///
    /// The copies of the manifest in segments have them from the next [`resegment`](Self::resegment) on: an account whose
    /// manifest is lost before that comes back with former labels.
    ///
    /// # Errors
    ///
    /// A label is too long, or there would be too many; or no answer: repeat the call.
    pub async fn label(
        &self,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let found = self.certain_manifest().await?;
            let next = found.manifest.label(labels)?;
            let is_set = next == found.manifest;
            let manifests = &self.storage.manifests;
            if is_set || manifests.swap(&self.account, found.version, next).await? {
                return Ok(());
            }
        }
    }
}
