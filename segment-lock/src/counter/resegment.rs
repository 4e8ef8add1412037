//! Creates, reads and changes the segments of an account. A caller that finds a plan finishes it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    Counter, CounterError, Inspection, LostSegments, Storage, delete::Deletion, lost::prepare,
    patience::Patience,
};
use crate::{
    Account, Durability, Layout, Manifest, ManifestError, Terms, VersionedManifest,
    limits::SEGMENTS_MAX,
    segment::{Create, ReadCopy, Refusal, Reply, Request, clocks_agree},
};

/// A plan begins this long after the time up to which a request may be from the future, in ms: the clocks of segments
/// differ a little.
pub(super) const PLAN_MARGIN_MS: u64 = 1000;

impl Counter {
    /// Creates the account, without money. If it exists already with the same terms, that is no error.
    ///
    /// # Errors
    ///
    /// A number out of range; an account of that name with other terms; or [`CounterError::Lost`] if the account exists
    /// and lost segments.
    pub fn create(
        storage: Storage,
        account: Account,
        terms: Terms,
        segments: u32,
    ) -> BoxFuture<'static, Result<Self, CounterError>> {
        Box::pin(async move {
            let counter = Self::open(storage, account);
            let mut lost = LostSegments::default();
            let mut patience = Patience::default();
            loop {
                patience.round()?;
                let (version, manifest) = counter.stored_manifest(terms).await?;
                if manifest.is_deleted() && manifest.placed() > 0 {
                    match counter.remove_deleted().await {
                        Ok(Deletion::Remains(refusal)) => return Err(refusal.into()),
                        // It exists again, or can be created.
                        Ok(_) | Err(CounterError::NotEmpty { .. }) => continue,
                        Err(error) => return Err(error),
                    }
                }
                if manifest.exists() {
                    // A segment without an answer is not lost.
                    let found = counter.inspect_by(&manifest).await.unwrap_or_default();
                    lost = found.lost;
                    break;
                }
                let place = counter.place(&manifest, segments).await;
                let new = counter.storage.segments.new_account();
                let next = manifest.create(terms, segments, new, place)?;
                let next = next.planned_at(counter.storage.segments.now_ms());
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
        })
    }

    /// Changes the number of segments that are homes, during normal use. Former homes remain: they have the answers to
    /// old requests, and lend their money to the others.
    ///
    /// # Errors
    ///
    /// A number out of range; too many changes of this account; [`CounterError::Lost`] if the account lost segments, which
    /// cannot be prepared; or the storage of an old or a new segment gave no answer. Then a change that was begun is not in
    /// force: a repeat finishes it, and another number takes its place, also the one in force.
    pub fn resegment(&self, segments: u32) -> BoxFuture<'_, Result<(), CounterError>> {
        Box::pin(async move {
            let mut patience = Patience::default();
            loop {
                patience.round()?;
                let found = self.certain_manifest().await?;
                let in_force = found.manifest.layouts().last();
                match found.manifest.planned() {
                    Some(plan) => match self.finish(&found, plan, 0).await {
                        Ok(()) => continue,
                        Err(_) if found.manifest.serves() && plan.segments != segments => {}
                        Err(error) => return Err(error),
                    },
                    None if in_force.is_some_and(|layout| layout.segments == segments) => {
                        return Ok(());
                    }
                    None => {}
                }
                let next = self
                    .next_plan(found.manifest.without_plan(), segments)
                    .await?;
                self.storage
                    .manifests
                    .swap(&self.account, found.version, next)
                    .await?;
            }
        })
    }

    /// `manifest` with a plan that can be finished now: the storage of each segment, old or new, gives an answer.
    async fn next_plan(&self, manifest: Manifest, segments: u32) -> Result<Manifest, CounterError> {
        let Inspection { views, lost, .. } = self.inspect_by(&manifest).await?;
        if !lost.0.is_empty() {
            let account = self.account.clone();
            return Err(CounterError::Lost {
                account,
                segments: lost,
            });
        }
        if views.values().any(|view| view.doubtful) {
            return Err(Refusal::Doubtful.into());
        }
        let now_ms = views.values().map(|view| view.now_ms).max();
        let from_ms = self.beginning(&manifest, now_ms.unwrap_or_default())?;
        let place = self.place(&manifest, segments).await;
        let planned = manifest.plan(segments, from_ms, place)?;
        let planned = planned.planned_at(self.storage.segments.now_ms());
        let new = manifest.segments()..planned.placed();
        let reads = new.map(|index| (self.at(&planned, index), ReadCopy.into()));
        for answer in self.storage.segments.call_all(reads.collect()).await {
            // It is missing, so far.
            drop(answer?);
        }
        Ok(planned)
    }

    /// The stored manifest, and its version. If there is none: the manifest of an account that does not exist, and 0.
    async fn stored_manifest(&self, terms: Terms) -> Result<(u64, Manifest), CounterError> {
        let found = self.storage.manifests.read(&self.account).await?;
        Ok(found.map_or_else(
            || (0, Manifest::absent(terms)),
            |VersionedManifest {
                 version, manifest, ..
             }| (version, manifest),
        ))
    }

    /// Whether there is no account, and no account created later will take a transfer of `time_ms`. If there is none,
    /// this records that time in its manifest.
    pub(super) async fn refuses(&self, time_ms: u64, terms: Terms) -> Result<bool, CounterError> {
        let (version, manifest) = self.stored_manifest(terms).await?;
        if manifest.exists() {
            return Ok(false);
        }
        if manifest.placed() > 0 {
            // Its deletion may be taken back: a segment that is not removed may have received the transfer.
            return match self.remove_deleted().await {
                Ok(Deletion::Remains(refusal)) => Err(refusal.into()),
                Ok(Deletion::None | Deletion::Done) | Err(CounterError::NotEmpty { .. }) => {
                    Ok(false)
                }
                Err(error) => Err(error),
            };
        }
        if version > 0 && manifest.mark_ms() >= time_ms {
            return Ok(true);
        }
        let (manifests, next) = (&self.storage.manifests, manifest.refuse(time_ms));
        Ok(manifests.swap(&self.account, version, next).await?)
    }

    /// The places that the storage prefers for the segments that `manifest` has not, out of so many.
    async fn place(
        &self,
        manifest: &Manifest,
        segments: u32,
    ) -> impl FnOnce(&[u32], u32) -> Vec<u32> + use<> {
        let taken: Vec<u32> = (0..manifest.placed())
            .map(|index| manifest.place_of(index))
            .collect();
        let more = segments.min(SEGMENTS_MAX).saturating_sub(manifest.placed());
        let storage = &self.storage.segments;
        let places = storage.place(&self.account, &taken, more).await;
        |_, _| places
    }

    /// Reads the account's manifest: its segments and their places. Finishes a plan first, if it can.
    ///
    /// # Errors
    ///
    /// The account does not exist, or the storage gave no answer.
    pub async fn read_manifest(&self) -> Result<Arc<Manifest>, CounterError> {
        match self.finished_manifest(0).await {
            Ok(found) => Ok(self.remember(found.manifest)),
            Err(_) => self.newest_manifest().await,
        }
    }

    /// Reads the manifest, and uses it from now on. Its plan, if there is one, is finished only if no layout is in force:
    /// otherwise a new segment whose storage gives no answer would keep the others from serving.
    pub(super) async fn newest_manifest(&self) -> Result<Arc<Manifest>, CounterError> {
        let mut found = self.certain_manifest().await?;
        if !found.manifest.serves() {
            found = self.finished_manifest(0).await?;
        }
        Ok(self.remember(found.manifest))
    }

    /// Uses the newest manifest from now on, because a segment is prepared for `generation`. A manifest that does not
    /// know that generation went back in time: this restores it, and the next round uses it.
    pub(super) async fn learn_manifest(&self, generation: u64) -> Result<(), CounterError> {
        let found = self.finished_manifest(generation).await?;
        if found.manifest.newest_generation() < generation {
            return self.restore(&found).await;
        }
        self.remember(found.manifest);
        Ok(())
    }

    /// Uses `manifest` from now on, if it is the newest.
    pub(super) fn remember(&self, manifest: Manifest) -> Arc<Manifest> {
        let mut known = self.manifest.lock();
        match &*known {
            // Of two concurrent reads, the other one was newer.
            Some(newer) if newer.generation() > manifest.generation() => Arc::clone(newer),
            _ => Arc::clone(known.insert(Arc::new(manifest))),
        }
    }

    /// Reads the manifest, and finishes its plan if there is one. A manifest that may have gone back in time is
    /// restored first. `prepared`: the greatest generation that a segment is known to be prepared for.
    pub(super) fn finished_manifest(
        &self,
        prepared: u64,
    ) -> BoxFuture<'_, Result<VersionedManifest, CounterError>> {
        Box::pin(async move {
            let mut patience = Patience::default();
            loop {
                patience.round()?;
                let found = self.certain_manifest().await?;
                match found.manifest.planned() {
                    None => return Ok(found),
                    Some(plan) => self.finish(&found, plan, prepared).await?,
                }
            }
        })
    }

    /// Reads the manifest, and restores it if it may have gone back in time. Does not finish a plan, which a doubtful
    /// segment would prevent.
    pub(super) fn certain_manifest(
        &self,
    ) -> BoxFuture<'_, Result<VersionedManifest, CounterError>> {
        Box::pin(async move {
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
        })
    }

    /// Makes the new segments for the plan, then prepares the others, and commits it. If a segment has decided a request
    /// that would have another home by the plan, replaces the plan. If another caller was faster, does nothing.
    ///
    /// While a new segment cannot be made, no other one is prepared, and all of them serve by the layout in force. If one
    /// is `prepared` for the plan, all new segments were made.
    async fn finish(
        &self,
        found: &VersionedManifest,
        plan: Layout,
        prepared: u64,
    ) -> Result<(), CounterError> {
        let VersionedManifest {
            version, manifest, ..
        } = found;
        let old = 0..manifest.segments();
        let new = manifest.segments()..plan.segments.max(manifest.segments());
        if manifest.is_restored() {
            let found = self.inspect_by(manifest).await?;
            let mut made = self.replace_lost(manifest, &found, new.start).await?;
            // Without durability, a segment is in doubt only if it was made just now.
            if manifest.terms().durability == Durability::Memory {
                made.retain(|_, view| view.doubtful);
                let read = self.inspect_by(manifest).await?;
                self.accept_as(manifest, &made, &read).await?;
            }
        }
        let prepare = prepare(manifest, plan, manifest.generation());
        let terms = manifest.terms();
        let is_first = manifest.layouts().is_empty() && !manifest.is_restored();
        let create = |index| {
            let create = Create {
                prepare: prepare.clone(),
                terms,
                // One segment has all of it: so it comes once, whatever the number of segments in a plan.
                credit: if is_first && index == 0 {
                    terms.credit()
                } else {
                    0
                },
                planned_ms: manifest.planned_ms(),
            };
            (index, Request::from(create))
        };
        // One that was lost since is made again.
        let mut replies = match self.ask_all(manifest, new.map(create)).await {
            Err(CounterError::Refused(Refusal::ClocksDiffer { .. }))
                if self.is_old(manifest) && !manifest.is_restored() =>
            {
                let next = manifest.plan_again(plan.generation)?;
                return self.swap_plan(*version, next).await;
            }
            Err(_) if prepared == plan.generation && !manifest.is_restored() => Vec::new(),
            made => made?,
        };
        let prepare = |index| (index, Request::Prepare(prepare.clone()));
        replies.extend(self.ask_all(manifest, old.map(prepare)).await?);
        let next = match self.after(manifest, &plan, &replies)? {
            Some(next) => next,
            // Another caller was faster, or the manifest went back in time.
            None => return self.restore(found).await,
        };
        self.swap_plan(*version, next).await
    }

    /// Whether the plan was made so long ago that segments are not made for it any more.
    fn is_old(&self, manifest: &Manifest) -> bool {
        let (planned_ms, now_ms) = (manifest.planned_ms(), self.storage.segments.now_ms());
        clocks_agree(planned_ms, now_ms, manifest.terms().skew_ms).is_err()
    }

    /// Writes the manifest with its plan committed, or made again now. If another caller was faster, does nothing.
    async fn swap_plan(&self, version: u64, next: Manifest) -> Result<(), CounterError> {
        let next = match next.planned() {
            Some(_) => next.planned_at(self.storage.segments.now_ms()),
            None => next,
        };
        let manifests = &self.storage.manifests;
        manifests.swap(&self.account, version, next).await?;
        Ok(())
    }

    /// The manifest after `replies` to the plan; `None` if there is a newer plan.
    fn after(
        &self,
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
                    let from_ms = self.beginning(manifest, *now_ms)?.max(after_ms + 1);
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

    /// The earliest time at which a plan made now may begin, in ms: no request can be from that time yet.
    ///
    /// Requests that a restored plan may have decided are refused as too old. An early begin makes them few. A wrong clock
    /// would make them many, so it is refused.
    pub(super) fn beginning(&self, manifest: &Manifest, now_ms: u64) -> Result<u64, CounterError> {
        let skew_ms = manifest.terms().skew_ms;
        if manifest.is_restored() {
            clocks_agree(self.storage.segments.now_ms(), now_ms, skew_ms)?;
            return Ok(now_ms + PLAN_MARGIN_MS);
        }
        Ok(now_ms + skew_ms + PLAN_MARGIN_MS)
    }
}
