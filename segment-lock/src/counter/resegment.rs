//! Which segments there are: created, read, changed. Whoever finds a plan finishes it.

use std::sync::Arc;

use super::{
    Counter, CounterError, LostSegments, Storage, balance_reads::BalanceReads, lost::prepare,
    patience::Patience,
};
use crate::{
    Account, Head, HeadError, Layout, Terms, VersionedHead,
    segment::{Create, Reply, Request},
};

/// A plan begins this long after the time at which no request can have come from its future, in ms:
/// the clocks of segments differ a little.
pub(super) const PLAN_MARGIN_MS: u64 = 1000;

/// So many segments are asked for a copy of a head that is not there.
const LOOKED_FOR: u32 = 8;

impl Counter {
    /// Creates the account, with nothing in it. It may exist already, if its terms are the same.
    ///
    /// # Errors
    ///
    /// A number out of range; an account of that name with other terms; or [`CounterError::Lost`] if there is such an
    /// account, and it lost segments. If its head was lost as well, that is restored from the segments that are left.
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
            let (version, head) = counter.stored_head(terms).await?;
            if head.exists() {
                // A segment that gives no answer is not lost.
                let found = counter.inspect_by(&head).await.unwrap_or_default();
                lost = found.lost;
                break;
            }
            let created = head.create(terms, segments, counter.place())?;
            let found = counter.found_again(&head, terms, segments).await?;
            if let Some(found) = &found {
                lost = counter.inspect_by(found).await?.lost;
            }
            let next = found.unwrap_or(created);
            let heads = &counter.storage.heads;
            if heads.swap(&counter.account, version, next).await? {
                break;
            }
        }
        let account = counter.account.clone();
        if counter.newest_head().await?.terms() != terms {
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
            let VersionedHead { version, head, .. } = self.finished_head().await?;
            if head
                .layouts()
                .last()
                .is_some_and(|layout| layout.segments == segments)
            {
                return Ok(());
            }
            let now_ms = match self.read_segments(0..head.segments(), &head).await {
                Ok(BalanceReads { lost, .. }) if !lost.is_empty() => {
                    return Err(self.lost(&head, &lost));
                }
                Ok(views) => views.now_ms(),
                Err(error) => {
                    self.pass(error, &mut patience).await?;
                    continue;
                }
            };
            let planned = head.plan(segments, beginning(&head, now_ms), self.place())?;
            self.storage
                .heads
                .swap(&self.account, version, planned)
                .await?;
        }
    }

    /// The head as it is stored, and its version; where there is none, that of an account that does
    /// not exist, and 0.
    async fn stored_head(&self, terms: Terms) -> Result<(u64, Head), CounterError> {
        let found = self.storage.heads.read(&self.account).await?;
        Ok(found.map_or_else(
            || (0, Head::absent(terms)),
            |VersionedHead { version, head, .. }| (version, head),
        ))
    }

    /// The head of an account that has none: it may be lost, and not the segments with their copies. They are looked for
    /// where they would be placed now: `segments` of them, and a few more.
    async fn found_again(
        &self,
        head: &Head,
        terms: Terms,
        segments: u32,
    ) -> Result<Option<Head>, CounterError> {
        let among = head.create(terms, segments.max(LOOKED_FOR), self.place())?;
        let copy = self.newest_copy(&among, 0).await?;
        Ok(copy.map(|copy| copy.refuse(head.mark_ms())))
    }

    /// Whether there is no account, and none that is created later will take a transfer of `time_ms`:
    /// that is recorded in its head, if there still is none. An account that lost its head is found again: its segments
    /// may have the money.
    pub(super) async fn refuses(&self, time_ms: u64, terms: Terms) -> Result<bool, CounterError> {
        let (version, head) = self.stored_head(terms).await?;
        if head.exists() {
            return Ok(false);
        }
        if version > 0 && head.mark_ms() >= time_ms {
            return Ok(true);
        }
        let found = self.found_again(&head, terms, LOOKED_FOR).await?;
        let refuses = found.is_none();
        let next = found.unwrap_or_else(|| head.refuse(time_ms));
        let heads = &self.storage.heads;
        Ok(heads.swap(&self.account, version, next).await? && refuses)
    }

    /// Where the storage wants more segments.
    fn place(&self) -> impl FnOnce(&[u32], u32) -> Vec<u32> {
        |taken, more| self.storage.segments.place(&self.account, taken, more)
    }

    /// The account's head, read now: which segments there are, and where. A plan that is found is finished first.
    ///
    /// # Errors
    ///
    /// There is no such account, or a storage gave no answer.
    pub async fn read_head(&self) -> Result<Arc<Head>, CounterError> {
        self.newest_head().await
    }

    /// Reads the head, finishing its plan if there is one, and goes by it from now on.
    pub(super) async fn newest_head(&self) -> Result<Arc<Head>, CounterError> {
        Ok(self.remember(self.finished_head().await?.head))
    }

    /// Goes by the newest head from now on, since a segment is prepared for `generation`. A head that does not know of
    /// that generation went back in time: it is restored, and the next round goes by it.
    pub(super) async fn learn_head(&self, generation: u64) -> Result<(), CounterError> {
        let found = self.finished_head().await?;
        if found.head.newest_generation() < generation {
            return self.restore(&found).await;
        }
        self.remember(found.head);
        Ok(())
    }

    /// Goes by `head` from now on, if it is the newest.
    pub(super) fn remember(&self, head: Head) -> Arc<Head> {
        let mut known = self.head.lock();
        match &*known {
            // Two read at once, and this one was overtaken.
            Some(newer) if newer.generation() > head.generation() => Arc::clone(newer),
            _ => Arc::clone(known.insert(Arc::new(head))),
        }
    }

    /// Reads the head, and finishes its plan if there is one. One that may have gone back in time is restored first.
    pub(super) async fn finished_head(&self) -> Result<VersionedHead, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let found = self.certain_head().await?;
            match found.head.planned() {
                None => return Ok(found),
                Some(plan) => self.finish(&found, plan).await?,
            }
        }
    }

    /// Reads the head, and restores one that may have gone back in time. Finishes no plan, which a doubtful segment would
    /// not let it.
    pub(super) async fn certain_head(&self) -> Result<VersionedHead, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let read = self.storage.heads.read(&self.account).await?;
            let found = read.filter(|found| found.head.exists());
            let found = found.ok_or_else(|| self.absent())?;
            match found.in_doubt {
                false => return Ok(found),
                true => self.restore(&found).await?,
            }
        }
    }

    /// Prepares every segment for the plan, and commits it; or replaces it, if a segment has decided
    /// a request that the plan would home elsewhere. If others were faster, does nothing.
    async fn finish(&self, found: &VersionedHead, plan: Layout) -> Result<(), CounterError> {
        let VersionedHead { version, head, .. } = found;
        if head.is_restored() {
            self.replace_lost(head, head.segments()).await?;
        }
        let prepare = prepare(head, plan, head.generation());
        let terms = head.terms();
        let request = |index| {
            let prepare = prepare.clone();
            match index < head.segments() {
                true => (index, Request::Prepare(prepare)),
                false => (index, Request::Create(Create { prepare, terms })),
            }
        };
        let indices = 0..plan.segments.max(head.segments());
        let replies = self.ask_all(head, indices.map(request)).await?;
        let next = match after(head, &plan, &replies)? {
            Some(next) => next,
            // Others were faster, or the head went back in time.
            None => return self.restore(found).await,
        };
        self.storage
            .heads
            .swap(&self.account, *version, next)
            .await?;
        Ok(())
    }
}

/// The head after `replies` to the plan; none if there is a newer plan.
fn after(head: &Head, plan: &Layout, replies: &[Reply]) -> Result<Option<Head>, CounterError> {
    let mut later_ms = None;
    for reply in replies {
        match reply {
            Reply::Prepared => {}
            Reply::Stale => return Ok(None),
            Reply::Later { after_ms, now_ms } => {
                let from_ms = beginning(head, *now_ms).max(after_ms + 1);
                later_ms = later_ms.max(Some(from_ms));
            }
            reply => return Err(CounterError::unexpected("prepare", reply)),
        }
    }
    let next: Result<Head, HeadError> = match later_ms {
        None => head.commit(plan.generation),
        Some(from_ms) => head.plan_later(plan.generation, from_ms),
    };
    Ok(Some(next?))
}

/// When a plan made now may begin, in ms: no request can have come from there yet.
fn beginning(head: &Head, now_ms: u64) -> u64 {
    // Whatever a restored plan may have decided is too old: the fewer ids are, the better.
    let skew_ms = match head.is_restored() {
        true => 0,
        false => head.terms().skew_ms,
    };
    now_ms + skew_ms + PLAN_MARGIN_MS
}
