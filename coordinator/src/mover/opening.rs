//! Opens slots at the shards that have them now: the slots of shards that were declared dead, by force; and slots of
//! new ranks. If a dead shard is reachable after all, it is notified.

use std::{collections::BTreeSet, mem, time::Duration};

use futures_util::future::join_all;
use ringfence_ring::ShardId;
use tokio::{task::JoinSet, time::timeout};

use super::{Context, run::Run, shards::Trouble};
use crate::{
    ids::{Epoch, MapVersion},
    limits::STEP_SLOTS,
    shard::ShardError,
    topology::{FailedShard, Opening, ShardEntry, Topology, TopologyError},
};

/// A reachable shard answers within this time. Most are not reachable.
const NOTICE_WITHIN: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Opens the slots that are due, and notes that in the record. Returns whether there is another record
    /// now.
    ///
    /// A step that fails is repeated the next time.
    pub(super) async fn open_due(&mut self) -> Result<bool, TopologyError> {
        if let Some(next) = self.after_views()? {
            return Ok(self.swap(next).await?.is_some());
        }
        let record = self.record.clone();
        let heirs = record.openings.iter().map(|opening| &opening.to.0);
        let heirs: BTreeSet<_> = heirs.collect();
        let openings = heirs.into_iter().map(|heir| self.open_at(&record, heir));
        let mut next = None;
        for opened in join_all(openings).await {
            match opened {
                Ok((heir, epochs)) => {
                    for epoch in epochs {
                        let opened = next.as_ref().unwrap_or(&*record).opened(heir, epoch);
                        next = opened.or(next);
                    }
                }
                Err(trouble) => self.handle(trouble).await?,
            }
        }
        match next {
            // A later record may give them to other shards: look at it first.
            _ if self.record.version() != record.version() => Ok(true),
            Some(next) => Ok(self.swap(next).await?.is_some()),
            None => Ok(false),
        }
    }

    /// The record that lets slots of dead shards be opened, if no process may use a view from before any more.
    ///
    /// Counts from when this run saw that a shard is dead: a mover that goes on with the work of another waits longer, but
    /// never less.
    fn after_views(&mut self) -> Result<Option<Topology>, TopologyError> {
        let now = self.around.clock.now();
        let last = self.record.constants.views_last();
        let mut next: Option<Topology> = None;
        for Opening { epoch, to, .. } in self.record.awaiting_views() {
            let until = *self.views_until.entry(*epoch).or_insert(now + last);
            let left = until.since(now);
            if left.is_zero() {
                let record = next.as_ref().unwrap_or(&self.record);
                let opens = record.let_open(*epoch, self.around.clock.unix())?;
                next = opens.or(next);
            } else {
                let reason = format!("a client may use the dead shard for {left:.1?} more");
                self.shards.wait(&to.0, reason);
            }
        }
        Ok(next)
    }

    /// How long the run may pause before the next slots are due.
    pub(super) fn until_due(&self) -> Duration {
        let now = self.around.clock.now();
        let awaited = self.record.awaiting_views();
        let awaited = awaited.filter_map(|opening| self.views_until.get(&opening.epoch));
        let left = awaited.map(|until| until.since(now));
        left.min().unwrap_or(Duration::MAX)
    }

    /// Opens the slots that `heir` has to open. Returns the epochs of these openings.
    async fn open_at<'a>(
        &self,
        record: &Topology,
        heir: &'a ShardId,
    ) -> Result<(&'a ShardId, Vec<Epoch>), Trouble> {
        let mut epochs = Vec::new();
        for mut step in record.first_opens(heir) {
            for slots in mem::take(&mut step.slots).chunks(STEP_SLOTS) {
                step.slots = slots.to_vec();
                self.shards.ask(record, heir, step.clone()).await?;
                self.shards.pause().await;
            }
            epochs.push(step.epoch);
        }
        for mut force in record.force_opens(heir) {
            for slots in mem::take(&mut force.slots).chunks(STEP_SLOTS) {
                force.slots = slots.to_vec();
                // The shard refuses slots that belong to others by a later record.
                self.shards.force_open(record, heir, force.clone()).await?;
                self.shards.pause().await;
            }
            epochs.push(force.epoch);
        }
        Ok((heir, epochs))
    }

    /// Notifies reachable shards that were declared dead and do not know it. Safety does not depend on that: no client
    /// asks them.
    pub(super) fn notify_failed_shards(&self) -> Notices {
        let mut notices = JoinSet::new();
        for failed in &self.record.failed {
            let (around, record, failed) =
                (self.around.clone(), self.record.clone(), failed.clone());
            notices.spawn(async move {
                let shard = &failed.shard.0;
                match notify(&around, &record, &failed).await {
                    Ok(true) => tracing::info!(%shard, "told that it was declared dead"),
                    Ok(false) => {}
                    Err(error) => tracing::debug!(%shard, %error, "gone for good"),
                }
            });
        }
        Notices(notices)
    }
}

/// Ends when dropped.
pub(super) struct Notices(JoinSet<()>);

impl Notices {
    /// Waits for all notices, for a short time at most.
    pub(super) async fn done(self) {
        self.0.join_all().await;
    }
}

/// Whether `failed` was reachable.
async fn notify(
    around: &Context,
    record: &Topology,
    failed: &FailedShard,
) -> Result<bool, ShardError> {
    let Some(life) = failed.lives.first() else {
        return Ok(false);
    };
    let entry = ShardEntry {
        address: failed.address.clone(),
        life: life.clone(),
        epoch: failed.epoch,
        used: true,
        changed: MapVersion::UNKNOWN,
    };
    let shard = around.dial.dial(&failed.shard.0, &entry)?;
    let mut link = soon(shard.connect_control(None)).await?;
    if !failed.lives.contains(link.life()) {
        return Ok(false);
    }
    let mut step = record.tell_failed(failed);
    for slots in mem::take(&mut step.slots).chunks(STEP_SLOTS) {
        step.slots = slots.to_vec();
        soon(link.step(&step)).await?;
    }
    Ok(true)
}

async fn soon<T>(asked: impl Future<Output = Result<T, ShardError>>) -> Result<T, ShardError> {
    let answer = timeout(NOTICE_WITHIN, asked).await;
    answer.unwrap_or_else(|_| {
        let reason = format!("none within {NOTICE_WITHIN:?}");
        Err(ShardError::NoReply { reason })
    })
}
