//! Deletes an account: first its manifest says so, then its segments are removed. Any caller can continue after any step.

use futures_util::future::BoxFuture;

use super::{Counter, CounterError, Remainder, lost::viewed, patience::Patience};
use crate::{
    Manifest,
    segment::{Refusal, Remove, Reply, Request, makes_for_ms},
};

/// How far the deletion of an account is.
pub(super) enum Deletion {
    /// It is not deleted.
    None,
    /// Its segments cannot be removed yet, for this reason.
    Remains(Refusal),
    /// Its segments are removed.
    Done,
}

impl Counter {
    /// Deletes the account with its log: it must be closed, without money, and all its transfers finished. Its name can be
    /// used again. An account created later under that name refuses the requests that this one has decided.
    ///
    /// For a minute after the account was created or resegmented, its segments remain: sweeps remove them.
    ///
    /// # Errors
    ///
    /// [`CounterError::NotEmpty`]; [`ManifestError::Open`](crate::ManifestError::Open);
    /// [`ManifestError::CreditLine`](crate::ManifestError::CreditLine). No answer: repeat the call. That is no error if
    /// the account was deleted before.
    pub fn delete(&self) -> BoxFuture<'_, Result<(), CounterError>> {
        Box::pin(async move {
            let mut patience = Patience::default();
            loop {
                patience.round()?;
                if !matches!(self.remove_deleted().await?, Deletion::None) {
                    return Ok(());
                }
                let found = self.finished_manifest(0).await?;
                // Checked first: the rest takes longer.
                found.manifest.delete(0)?;
                // A former call of that may have left segments open.
                self.close().await?;
                self.sweep().await?;
                let balance = self.exact_balance().await?;
                // What is finished in a closed account stays so. Otherwise one segment would be removed, and another not.
                let views = self.inspect_by(&found.manifest).await?.views;
                let unfinished = views.values().map(|view| view.unfinished).sum();
                if (balance.ledger, balance.held, unfinished) != (0, 0, 0) {
                    return Err(self.not_empty((balance.ledger, balance.held), unfinished));
                }
                self.may_go(&found.manifest)?;
                let deleted = found.manifest.delete(self.storage.segments.now_ms())?;
                let manifests = &self.storage.manifests;
                manifests
                    .swap(&self.account, found.version, deleted)
                    .await?;
            }
        })
    }

    /// Whether an account with a credit line is old enough: all of its money is the credit, which could be used as long as its
    /// segment is there.
    fn may_go(&self, manifest: &Manifest) -> Result<(), CounterError> {
        let terms = manifest.terms();
        let now_ms = self.storage.segments.now_ms();
        let retry_after_ms = makes_for_ms(manifest.planned_ms(), now_ms, terms.skew_ms);
        match terms.credit() > 0 && retry_after_ms > 0 {
            true => Err(Refusal::Busy { retry_after_ms }.into()),
            false => Ok(()),
        }
    }

    /// Removes the segments of an account that is deleted. In the first minute after the account's last plan, they remain.
    ///
    /// # Errors
    ///
    /// The account is not empty after all: it exists again. Or no answer.
    pub(super) async fn remove_deleted(&self) -> Result<Deletion, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let found = self.storage.manifests.read(&self.account).await?;
            let Some(found) = found.filter(|found| found.manifest.is_deleted()) else {
                return Ok(Deletion::None);
            };
            *self.manifest.lock() = None;
            if found.manifest.placed() == 0 {
                return Ok(Deletion::Done);
            }
            let (next, end) = match self.remove_segments(&found.manifest).await {
                Ok(next) => (next, None),
                Err(CounterError::Refused(refusal @ Refusal::Busy { .. }))
                    if found.manifest.terms().credit() == 0 =>
                {
                    return Ok(Deletion::Remains(refusal));
                }
                Err(error @ CounterError::Storage(_)) => return Err(error),
                Err(error) => (found.manifest.undelete(), Some(error)),
            };
            let manifests = &self.storage.manifests;
            let swapped = manifests.swap(&self.account, found.version, next).await?;
            if let (true, Some(error)) = (swapped, end) {
                return Err(error);
            }
        }
    }

    /// Whether an account of that name was deleted with its segments, and none that is created later takes requests of
    /// `time_ms`. As long as a segment is there, the deletion may be taken back.
    pub(super) async fn was_deleted(&self, time_ms: u64) -> Result<bool, CounterError> {
        let found = self.storage.manifests.read(&self.account).await?;
        let manifest = found.map(|found| found.manifest);
        Ok(manifest.is_some_and(|manifest| {
            manifest.is_deleted() && manifest.placed() == 0 && manifest.mark_ms() >= time_ms
        }))
    }

    /// Removes all segments. Returns the manifest after that.
    async fn remove_segments(&self, manifest: &Manifest) -> Result<Manifest, CounterError> {
        let request = |index| {
            let remove = Remove {
                generation: manifest.last_generation(),
                credit: manifest.terms().credit(),
                mark_ms: manifest.mark_ms(),
                planned_ms: manifest.planned_ms(),
            };
            (self.at(manifest, index), remove.into())
        };
        let requests: Vec<(_, Request)> = (0..manifest.placed()).map(request).collect();
        let mut later_ms = None;
        for answer in self.storage.segments.call_all(requests).await {
            match answer? {
                // Removed before.
                Ok(Reply::Removed) | Err(Refusal::Missing) => {}
                Ok(Reply::Later { after_ms, .. }) => later_ms = later_ms.max(Some(after_ms)),
                answer => {
                    let view = viewed(answer?)?;
                    let owned = i128::from(view.value) + i128::from(view.held);
                    let ledger = owned - i128::from(manifest.terms().credit());
                    return Err(self.not_empty((ledger, view.held.into()), view.unfinished));
                }
            }
        }
        match later_ms {
            None => Ok(manifest.without_segments()),
            Some(after_ms) => Ok(manifest.delete(after_ms)?),
        }
    }

    fn not_empty(&self, (ledger, held): (i128, i128), unfinished: usize) -> CounterError {
        CounterError::NotEmpty {
            account: self.account.clone(),
            remainder: Box::new(Remainder {
                ledger,
                held,
                unfinished,
            }),
        }
    }
}
