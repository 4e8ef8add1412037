//! Regular work on an account, by any process. A segment that gets no requests expires, finishes and forgets nothing by
//! itself.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;

use super::{Counter, CounterError, Inspection, patience::Patience};
use crate::{
    Manifest, VersionedManifest,
    limits::{EXPIRED_PER_CALL_MAX, PURGED_PER_CALL_MAX},
    segment::{Expire, Purge, Reply, Request, SegmentView},
};

/// The results of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Reservations that came back.
    pub expired: usize,
    /// Transfers of other callers that this sweep finished.
    pub delivered: usize,
    /// Those of them that their destinations refused; the money is back.
    pub returned: usize,
    /// Credits that are no longer kept.
    pub unpinned: usize,
    /// Old answers that were forgotten.
    pub purged: usize,
    /// What was in the account before; `None` if it could not be read, and of a sweep by a coordinator.
    pub found: Option<Inspection>,
    /// The errors. All other work was done.
    pub errors: Vec<CounterError>,
}

impl Counter {
    /// Expires reservations, finishes transfers, forgets old answers. Any number of processes may do this at any time.
    ///
    /// # Errors
    ///
    /// The account's manifest cannot be read. All other errors are in the result.
    pub fn sweep(&self) -> BoxFuture<'_, Result<Swept, CounterError>> {
        Box::pin(async move {
            let finished = self.finished_manifest(0).await;
            if let Err(error @ CounterError::NoAccount { .. }) = finished {
                self.remove_deleted().await?;
                return Err(error);
            }
            let manifest = self.newest_manifest().await?;
            let mut swept = Swept {
                errors: finished.err().into_iter().collect(),
                ..Swept::default()
            };
            let there = self.see(&manifest, &mut swept).await;
            for index in there {
                if let Err(error) = self.sweep_segment(&manifest, index, &mut swept).await {
                    swept.errors.push(error);
                }
            }
            Ok(swept)
        })
    }

    /// Records the content of every segment in the manifest, for the case that a segment is lost later. Returns the
    /// segments that exist.
    async fn see(&self, manifest: &Manifest, swept: &mut Swept) -> Vec<u32> {
        let found = match self.inspect_by(manifest).await {
            Ok(found) => found,
            Err(error) => {
                swept.errors.push(error);
                return (0..manifest.segments()).collect();
            }
        };
        if !found.lost.0.is_empty() {
            swept.errors.push(CounterError::Lost {
                account: self.account.clone(),
                segments: found.lost.clone(),
            });
        }
        if let Err(error) = self.record_seen(&found.views).await {
            swept.errors.push(error);
        }
        let there = found.views.keys().copied().collect();
        swept.found = Some(found);
        there
    }

    /// Records the content of `views` in the manifest, if it has changed.
    pub(super) async fn record_seen(
        &self,
        views: &BTreeMap<u32, SegmentView>,
    ) -> Result<(), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let VersionedManifest {
                version, manifest, ..
            } = self.certain_manifest().await?;
            let Some(seen) = manifest.see(views) else {
                return Ok(());
            };
            let manifests = &self.storage.manifests;
            if manifests.swap(&self.account, version, seen.clone()).await? {
                self.remember(seen);
                return Ok(());
            }
        }
    }

    async fn sweep_segment(
        &self,
        manifest: &Manifest,
        index: u32,
        swept: &mut Swept,
    ) -> Result<(), CounterError> {
        swept.expired += self
            .repeat(
                manifest,
                index,
                Request::Expire(Expire),
                EXPIRED_PER_CALL_MAX,
            )
            .await?;
        self.recover_sent(manifest, index, swept).await?;
        self.recover_pinned(manifest, index, swept).await?;
        swept.purged += self
            .repeat(manifest, index, Request::Purge(Purge), PURGED_PER_CALL_MAX)
            .await?;
        Ok(())
    }

    /// Repeats the request until it does less than one request may do. Returns the sum.
    async fn repeat(
        &self,
        manifest: &Manifest,
        index: u32,
        request: Request,
        per_call_max: usize,
    ) -> Result<usize, CounterError> {
        let mut total = 0;
        loop {
            let done = match self.ask(manifest, index, request.clone()).await? {
                Reply::Expired(done) | Reply::Purged(done) => done,
                reply => return Err(CounterError::unexpected("expire or purge", &reply)),
            };
            total += done;
            if done < per_call_max {
                return Ok(total);
            }
        }
    }
}
