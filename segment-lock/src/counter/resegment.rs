//! The segments of an account: created, read, changed. A caller that finds a plan finishes it.

use std::sync::Arc;

use super::{
    Counter, CounterError, LostSegments, Storage, balance_reads::BalanceReads, lost::prepare,
    patience::Patience,
};
use crate::{
    Account, Layout, Manifest, ManifestError, Terms, VersionedManifest,
    segment::{Create, Reply, Request},
};

/// A plan begins this long after the time at which no request can have come from its future, in ms:
/// the clocks of segments differ a little.
pub(super) const PLAN_MARGIN_MS: u64 = 1000;

/// So many segments are asked for a copy of a manifest that is not there.
const LOOKED_FOR: u32 = 8;

impl Counter {
    /// Creates the account, with nothing in it. It may exist already, if its terms are the same.
    ///
    /// # Errors
    ///
    /// A number out of range; an account of that name with other terms; or [`CounterError::Lost`] if there is such an
    /// account, and it lost segments. If its manifest was lost as well, that is restored from the segments that are left.
    pub async fn create(
        storage: Storage,
        account: Account,
        terms: Terms,
        segments: u32,
    ) -> Result<Self, CounterError> {
        let counter = Self::open(storage, account);
        let mut lost = LostSegments::default();
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let (version, manifest) = counter.stored_manifest(terms).await?;
            if manifest.exists() {
                // A segment that gives no answer is not lost.
                let found = counter.inspect_by(&manifest).await.unwrap_or_default();
                lost = found.lost;
                break;
            }
            let created = manifest.create(terms, segments, counter.place())?;
            let found = counter.found_again(&manifest, terms, segments).await?;
            if let Some(found) = &found {
                lost = counter.inspect_by(found).await?.lost;
            }
            let next = found.unwrap_or(created);
            let manifests = &counter.storage.manifests;
            if manifests.swap(&counter.account, version, next).await? {
                break;
            }
        }
        let account = counter.account.clone();
        if counter.newest_manifest().await?.terms() != terms {
            return Err(CounterError::AccountExists { account });
        }
        match lost.0.is_empty() {
            true => Ok(counter),
            false => Err(CounterError::Lost {
                account,
                segments: lost,
            }),
        }
    }

    /// Changes the number of segments that are homes, while all goes on. Those that were homes
    /// before remain: old requests have their answers there, and their money is lent to the others.
    ///
    /// # Errors
    ///
    /// A number out of range, or an account that was resegmented too often; or [`CounterError::Lost`] if the account lost
    /// segments, none of which could be prepared.
    pub async fn resegment(&self, segments: u32) -> Result<(), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let VersionedManifest {
                version, manifest, ..
            } = self.finished_manifest().await?;
            if manifest
                .layouts()
                .last()
                .is_some_and(|layout| layout.segments == segments)
            {
                return Ok(());
            }
            let now_ms = match self.read_segments(0..manifest.segments(), &manifest).await {
                Ok(BalanceReads { lost, .. }) if !lost.is_empty() => {
                    return Err(self.lost(&manifest, &lost));
                }
                Ok(views) => views.now_ms(),
                Err(error) => {
                    self.pass(error, &mut patience).await?;
                    continue;
                }
            };
            let planned = manifest.plan(segments, beginning(&manifest, now_ms), self.place())?;
            self.storage
                .manifests
                .swap(&self.account, version, planned)
                .await?;
        }
    }

    /// The manifest as it is stored, and its version; where there is none, that of an account that does
    /// not exist, and 0.
    async fn stored_manifest(&self, terms: Terms) -> Result<(u64, Manifest), CounterError> {
        let found = self.storage.manifests.read(&self.account).await?;
        Ok(found.map_or_else(
            || (0, Manifest::absent(terms)),
            |VersionedManifest {
                 version, manifest, ..
             }| (version, manifest),
        ))
    }

    /// The manifest of an account that has none: it may be lost, and not the segments with their copies. They are looked for
    /// where they would be placed now: `segments` of them, and a few more.
    async fn found_again(
        &self,
        manifest: &Manifest,
        terms: Terms,
        segments: u32,
    ) -> Result<Option<Manifest>, CounterError> {
        let among = manifest.create(terms, segments.max(LOOKED_FOR), self.place())?;
        let copy = self.newest_copy(&among, 0).await?;
        Ok(copy.map(|copy| copy.refuse(manifest.mark_ms())))
    }

    /// Whether there is no account, and none that is created later will take a transfer of `time_ms`:
    /// that is recorded in its manifest, if there still is none. An account that lost its manifest is found again: its segments
    /// may have the money.
    pub(super) async fn refuses(&self, time_ms: u64, terms: Terms) -> Result<bool, CounterError> {
        let (version, manifest) = self.stored_manifest(terms).await?;
        if manifest.exists() {
            return Ok(false);
        }
        if version > 0 && manifest.mark_ms() >= time_ms {
            return Ok(true);
        }
        let found = self.found_again(&manifest, terms, LOOKED_FOR).await?;
        let refuses = found.is_none();
        let next = found.unwrap_or_else(|| manifest.refuse(time_ms));
        let manifests = &self.storage.manifests;
        Ok(manifests.swap(&self.account, version, next).await? && refuses)
    }

    /// Where the storage wants more segments.
    fn place(&self) -> impl FnOnce(&[u32], u32) -> Vec<u32> {
        |taken, more| self.storage.segments.place(&self.account, taken, more)
    }

    /// The account's manifest, read now: which segments there are, and where. A plan that is found is finished first.
    ///
    /// # Errors
    ///
    /// There is no such account, or a storage gave no answer.
    pub async fn read_manifest(&self) -> Result<Arc<Manifest>, CounterError> {
        self.newest_manifest().await
    }

    /// Reads the manifest, finishing its plan if there is one, and goes by it from now on.
    pub(super) async fn newest_manifest(&self) -> Result<Arc<Manifest>, CounterError> {
        Ok(self.remember(self.finished_manifest().await?.manifest))
    }

    /// Goes by the newest manifest from now on, since a segment is prepared for `generation`. A manifest that does not know of
    /// that generation went back in time: it is restored, and the next round goes by it.
    pub(super) async fn learn_manifest(&self, generation: u64) -> Result<(), CounterError> {
        let found = self.finished_manifest().await?;
        if found.manifest.newest_generation() < generation {
            return self.restore(&found).await;
        }
        self.remember(found.manifest);
        Ok(())
    }

    /// Goes by `manifest` from now on, if it is the newest.
    pub(super) fn remember(&self, manifest: Manifest) -> Arc<Manifest> {
        let mut known = self.manifest.lock();
        match &*known {
            // Two read at once, and this one was overtaken.
            Some(newer) if newer.generation() > manifest.generation() => Arc::clone(newer),
            _ => Arc::clone(known.insert(Arc::new(manifest))),
        }
    }

    /// Reads the manifest, and finishes its plan if there is one. One that may have gone back in time is restored first.
    pub(super) async fn finished_manifest(&self) -> Result<VersionedManifest, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let found = self.certain_manifest().await?;
            match found.manifest.planned() {
                None => return Ok(found),
                Some(plan) => self.finish(&found, plan).await?,
            }
        }
    }

    /// Reads the manifest, and restores one that may have gone back in time. Finishes no plan, which a doubtful segment would
    /// not let it.
    pub(super) async fn certain_manifest(&self) -> Result<VersionedManifest, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let read = self.storage.manifests.read(&self.account).await?;
            let found = read.filter(|found| found.manifest.exists());
            let found = found.ok_or_else(|| self.absent())?;
            match found.in_doubt {
                false => return Ok(found),
                true => self.restore(&found).await?,
            }
        }
    }

    /// Prepares every segment for the plan, and commits it; or replaces it, if a segment has decided
    /// a request that the plan would home elsewhere. If others were faster, does nothing.
    async fn finish(&self, found: &VersionedManifest, plan: Layout) -> Result<(), CounterError> {
        let VersionedManifest {
            version, manifest, ..
        } = found;
        if manifest.is_restored() {
            self.replace_lost(manifest, manifest.segments()).await?;
        }
        let prepare = prepare(manifest, plan, manifest.generation());
        let terms = manifest.terms();
        let request = |index| {
            let prepare = prepare.clone();
            match index < manifest.segments() {
                true => (index, Request::Prepare(prepare)),
                false => (index, Request::Create(Create { prepare, terms })),
            }
        };
        let indices = 0..plan.segments.max(manifest.segments());
        let replies = self.ask_all(manifest, indices.map(request)).await?;
        let next = match after(manifest, &plan, &replies)? {
            Some(next) => next,
            // Others were faster, or the manifest went back in time.
            None => return self.restore(found).await,
        };
        self.storage
            .manifests
            .swap(&self.account, *version, next)
            .await?;
        Ok(())
    }
}

/// The manifest after `replies` to the plan; none if there is a newer plan.
fn after(
    manifest: &Manifest,
    plan: &Layout,
    replies: &[Reply],
) -> Result<Option<Manifest>, CounterError> {
    let mut later_ms = None;
    for reply in replies {
        match reply {
            Reply::Prepared => {}
            Reply::Stale => return Ok(None),
            Reply::Later { after_ms, now_ms } => {
                let from_ms = beginning(manifest, *now_ms).max(after_ms + 1);
                later_ms = later_ms.max(Some(from_ms));
            }
            reply => return Err(CounterError::unexpected("prepare", reply)),
        }
    }
    let next: Result<Manifest, ManifestError> = match later_ms {
        None => manifest.commit(plan.generation),
        Some(from_ms) => manifest.plan_later(plan.generation, from_ms),
    };
    Ok(Some(next?))
}

/// When a plan made now may begin, in ms: no request can have come from there yet.
fn beginning(manifest: &Manifest, now_ms: u64) -> u64 {
    // All ids that a restored plan may have decided are too old: the fewer, the better.
    let skew_ms = match manifest.is_restored() {
        true => 0,
        false => manifest.terms().skew_ms,
    };
    now_ms + skew_ms + PLAN_MARGIN_MS
}
