//! Ends the move of a slot: opens it at its next shard and shuts it at the former one.

use futures_util::future::join_all;
use ringfence_ring::Slot;

use super::{
    Phase,
    run::Run,
    shards::Trouble,
    slot_migration::{Empty, step},
};
use crate::{
    ids::{Epoch, Token},
    limits::STEP_SLOTS,
    shard::{Mode, Stepped},
    topology::{ShardName, TopologyError},
};

impl Run<'_> {
    /// Opens and shuts empty slots. Returns the moves that may be finished in the run's record, which was read before
    /// these steps.
    ///
    /// A step that fails is repeated the next time.
    pub(super) async fn finish(&mut self) -> Result<Vec<(Epoch, Vec<Slot>)>, TopologyError> {
        let version = self.record.version();
        let finish = self.empty.values().map(|empty| self.move_over(empty));
        let mut finished = Vec::new();
        for moved in join_all(finish).await {
            match moved {
                Ok(moved) => finished.push(moved),
                Err(trouble) => self.handle(trouble).await?,
            }
        }
        if self.record.version() != version {
            finished.clear();
        }
        Ok(finished)
    }

    /// Opens slots at their next shard, and then shuts them at the former one.
    async fn move_over(&self, empty: &Empty) -> Result<(Epoch, Vec<Slot>), Trouble> {
        let id = &empty.id;
        let slots: Vec<_> = empty.slots.iter().copied().collect();
        self.change(&id.to, id.epoch, Mode::Open, &slots, empty.above)
            .await?;
        self.around.observer.tell(Phase::Opened);
        self.change(&id.from, id.epoch, Mode::Shut, &slots, Token::default())
            .await?;
        self.around.observer.tell(Phase::Shut);
        Ok((id.epoch, slots))
    }

    /// Changes slots at a shard, some at a time, and marks the shard quiet.
    async fn change(
        &self,
        shard: &ShardName,
        epoch: Epoch,
        mode: Mode,
        slots: &[Slot],
        above: Token,
    ) -> Result<(), Trouble> {
        let record = &*self.record;
        let mut step = step(record, shard, epoch, mode, above);
        for slots in slots.chunks(STEP_SLOTS) {
            step.slots = slots.to_vec();
            all_taken(&self.shards.ask(record, &shard.0, step.clone()).await?)?;
            self.shards.pause().await;
        }
        self.shards.mark_quiet(record, &shard.0).await;
        Ok(())
    }
}

/// A shard refuses a slot that has another move in a later record.
fn all_taken(stepped: &Stepped) -> Result<(), Trouble> {
    match stepped.refused.is_empty() {
        true => Ok(()),
        false => Err(Trouble::Outdated),
    }
}
