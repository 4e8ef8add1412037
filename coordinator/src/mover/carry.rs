//! Carries the counters of a batch's slots to the next shard, until that shard serves them.
//!
//! A slot's counters do not change after its seal. So they are copied at once, before the held locks are known. The
//! mover lists them again and again until none is left, so no step depends on the work of another mover, or on the
//! state of a mover that died. Blocks of ids, and the requests of groups with many open ones, are copied before the seal;
//! after the seal, only what the next shard lacks. So the time for which a slot is sealed does not grow with their number.

use ringfence_ring::Slot;

use super::{
    Phase,
    copy::OpenAhead,
    lives::lives,
    shards::Trouble,
    slot_migration::{Report, SlotMigration},
};
use crate::{
    limits::STEP_SLOTS,
    shard::{Admit, AskGroups, DropGroups, When},
    topology::{Migration, Topology},
};

impl SlotMigration {
    /// Has the next shard serve the counters of slots that are sealed already, once per pair of lives of the two
    /// shards.
    ///
    /// For moves whose locks wait for a grace.
    pub(super) async fn carry_sealed(
        &mut self,
        record: &Topology,
        migration: &Migration,
    ) -> Result<(), Trouble> {
        let lives = lives(record, &self.from, &migration.to);
        if self.carried.get(&migration.to) == Some(&lives) {
            return Ok(());
        }
        let mut sealed = Vec::new();
        for slots in migration.slots.chunks(STEP_SLOTS) {
            let (epoch, slots) = (self.epoch, slots.to_vec());
            let when = When::Sealed;
            let ask = AskGroups { epoch, slots, when };
            let open = self
                .shards
                .ask(record, &self.from.0, ask.clone())
                .await?
                .refused;
            sealed.extend(ask.slots.into_iter().filter(|slot| !open.contains(slot)));
            self.shards.pause().await;
        }
        if self
            .hand_over_to(record, migration, &sealed)
            .await?
            .is_some()
        {
            self.carried.insert(migration.to.clone(), lives);
        }
        Ok(())
    }

    /// Has the next shard serve the counters of `slots`, which are sealed at the former shard and imported at the next
    /// one. `open`: what it has of their open requests.
    pub(super) async fn carry(
        &self,
        record: &Topology,
        migration: &Migration,
        slots: &[Slot],
        mut open: OpenAhead,
    ) -> Result<(), Trouble> {
        let (epoch, from) = (self.epoch, &self.from.0);
        let (slots, when) = (slots.to_vec(), When::Sealed);
        let ask = AskGroups { epoch, slots, when };
        let complete = loop {
            let left = self.shards.ask(record, from, ask.clone()).await?;
            all_done(&left.refused)?;
            if left.groups.is_empty() {
                break left.complete;
            }
            let mut groups = Vec::new();
            for group in left.groups {
                let copy = self.copy(record, migration, &group, &mut open).await?;
                groups.push((group.key, copy));
            }
            let count = groups.len();
            let drop = DropGroups { epoch, groups };
            let dropped = self.shards.ask(record, from, drop).await?;
            all_done(&dropped.refused)?;
            if let Some(key) = dropped.differ.first() {
                let reason = format!("counter {key} is kept: its copy has other content");
                return Err(self.shards.wait(from, reason));
            }
            self.around.observer.tell(Phase::Dropped);
            self.report(Report::Carried(count)).await;
            self.shards.pause_briefly().await;
        };
        let admit = Admit {
            epoch,
            slots: ask.slots,
            complete,
        };
        all_done(&self.shards.ask(record, &migration.to.0, admit).await?)?;
        self.around.observer.tell(Phase::Admitted);
        Ok(())
    }
}

/// A shard refuses slots that a later record moves elsewhere.
fn all_done(refused: &[Slot]) -> Result<(), Trouble> {
    match refused {
        [] => Ok(()),
        _ => Err(Trouble::Outdated),
    }
}
