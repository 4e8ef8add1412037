//! Shards that were declared dead: their slots are opened by force at those that have them now, and they
//! are told, if they are there after all.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use ringfence_ring::ShardId;
use tokio::{task::JoinSet, time::timeout};

use super::{Context, run::Run, shards::Trouble};
use crate::{
    ids::{Epoch, MapVersion},
    shard::ShardError,
    topology::{FailedShard, ShardEntry, Topology, TopologyError},
};

/// A reachable shard answers within this; most are not reachable.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Opens slots by force that are due, and puts that in the record. Returns whether there is
    /// another record now.
    ///
    /// What fails stays for the next time.
    pub(super) async fn open_by_force(&mut self) -> Result<bool, TopologyError> {
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
                Err(trouble) => self.heed(trouble).await?,
            }
        }
        match next {
            // By a later record they may be others' already: it is looked at first.
            _ if self.record.version() != record.version() => Ok(true),
            Some(next) => Ok(self.swap(next).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Opens what `heir` has in the place of others. Answers since when.
    async fn open_at<'a>(
        &self,
        record: &Topology,
        heir: &'a ShardId,
    ) -> Result<(&'a ShardId, Vec<Epoch>), Trouble> {
        let mut epochs = Vec::new();
        for force in record.force_opens(heir) {
            // Refused are slots that are others' by a later record.
            self.shards.force_open(record, heir, &force).await?;
            epochs.push(force.epoch);
        }
        Ok((heir, epochs))
    }

    /// Tells shards that were declared dead, if they answer in a life that believes otherwise. Nothing
    /// hangs on it: nobody asks them.
    pub(super) fn tell_failed_shards(&self) -> Telling {
        let mut telling = JoinSet::new();
        for failed in &self.record.failed {
            let (around, record, failed) =
                (self.around.clone(), self.record.clone(), failed.clone());
            telling.spawn(async move {
                let shard = &failed.shard.0;
                match timeout(TOLD_WITHIN, tell(&around, &record, &failed)).await {
                    Ok(Ok(true)) => tracing::info!(%shard, "told that it was declared dead"),
                    Ok(Ok(false)) | Err(_) => {}
                    Ok(Err(error)) => tracing::debug!(%shard, %error, "gone for good"),
                }
            });
        }
        Telling(telling)
    }
}

/// Ends when it is dropped.
pub(super) struct Telling(JoinSet<()>);

impl Telling {
    /// Waits until all are told that are there: not for long.
    pub(super) async fn done(self) {
        self.0.join_all().await;
    }
}

/// Whether `failed` was there to be told.
async fn tell(
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
    let mut link = shard.connect_migration(None).await?;
    if !failed.lives.contains(link.life()) {
        return Ok(false);
    }
    link.step(&record.tell_failed(failed)).await?;
    Ok(true)
}
