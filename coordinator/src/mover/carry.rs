//! The counters of a batch's slots, from the seal until the next shard serves them.
//!
//! A slot's counters stand still from its seal on: so they go at once, before it is known which locks are held. They
//! are asked for anew until none is left, so there is nothing to remember of what another mover did, or this one
//! before it died.

use ringfence_ring::Slot;

use super::{
    Phase,
    departure::{Departure, Report, lives},
    shards::Trouble,
};
use crate::{
    ids::Life,
    limits::STEP_SLOTS,
    shard::{Admit, Arrival, Arrive, AskGroups, CopyIn, CopyOut, DropGroups, Group},
    topology::{Motion, Topology},
};

impl Departure {
    /// Has the next shard serve the counters of slots that are sealed already, once in the lives that the shards live.
    ///
    /// For moves whose locks wait for a grace.
    pub(super) async fn carry_sealed(
        &mut self,
        record: &Topology,
        motion: &Motion,
    ) -> Result<(), Trouble> {
        let lives = lives(record, &self.from, &motion.to);
        if self.carried.get(&motion.to) == Some(&lives) {
            return Ok(());
        }
        let mut sealed = Vec::new();
        for slots in motion.slots.chunks(STEP_SLOTS) {
            let (epoch, slots) = (self.epoch, slots.to_vec());
            let ask = AskGroups { epoch, slots };
            let open = self
                .shards
                .groups(record, &self.from.0, &ask)
                .await?
                .refused;
            sealed.extend(ask.slots.into_iter().filter(|slot| !open.contains(slot)));
            self.shards.pause().await;
        }
        if self.hand_over_to(record, motion, &sealed).await?.is_some() {
            self.carried.insert(motion.to.clone(), lives);
        }
        Ok(())
    }

    /// Has the next shard serve the counters of `slots`, which the former one has sealed and the next one taken in.
    pub(super) async fn carry(
        &self,
        record: &Topology,
        motion: &Motion,
        slots: &[Slot],
    ) -> Result<(), Trouble> {
        let (epoch, from) = (self.epoch, &self.from.0);
        let slots = slots.to_vec();
        let ask = AskGroups { epoch, slots };
        loop {
            let left = self.shards.groups(record, from, &ask).await?;
            all_done(&left.refused)?;
            if left.groups.is_empty() {
                break;
            }
            for group in &left.groups {
                self.copy(record, motion, group).await?;
            }
            let keys: Vec<_> = left.groups.into_iter().map(|group| group.key).collect();
            let count = keys.len();
            let drop = DropGroups { epoch, keys };
            all_done(&self.shards.drop_groups(record, from, &drop).await?)?;
            self.around.observer.tell(Phase::Dropped);
            self.tell(Report::Carried(count)).await;
            self.shards.pause_briefly().await;
        }
        let slots = ask.slots;
        let admit = Admit { epoch, slots };
        all_done(&self.shards.admit(record, &motion.to.0, &admit).await?)?;
        self.around.observer.tell(Phase::Admitted);
        Ok(())
    }

    /// Has the next shard take `group`, which the former one may drop after that.
    async fn copy(&self, record: &Topology, motion: &Motion, group: &Group) -> Result<(), Trouble> {
        let (epoch, to) = (self.epoch, &motion.to.0);
        let source = life(record, motion)?;
        let mut copy = CopyOut {
            epoch,
            key: group.key.clone(),
            after: None,
        };
        let sizes = loop {
            let piece = self.shards.copy_out(record, &self.from.0, &copy).await?;
            let Some(piece) = piece else {
                // Another mover was faster; or the slot is on another way, and nothing is dropped.
                return Ok(());
            };
            let put = CopyIn {
                epoch,
                source: source.clone(),
                key: group.key.clone(),
                rows: piece.rows,
            };
            if !self.shards.copy_in(record, to, &put).await? {
                return Err(Trouble::Outdated);
            }
            self.around.observer.tell(Phase::Copied);
            self.shards.pause_briefly().await;
            copy.after = piece.next;
            if copy.after.is_none() {
                break piece.sizes;
            }
        };
        let arrive = Arrive {
            epoch,
            source,
            group: group.clone(),
            sizes,
        };
        let arrival = self.shards.arrive(record, to, &arrive).await?;
        self.arrived(motion, group, arrival)
    }

    /// What is to be done once the next shard has answered.
    fn arrived(&self, motion: &Motion, group: &Group, arrival: Arrival) -> Result<(), Trouble> {
        let key = &group.key;
        let reason = match arrival {
            Arrival::Here => {
                self.around.observer.tell(Phase::Arrived);
                return Ok(());
            }
            Arrival::Refused => return Err(Trouble::Outdated),
            Arrival::Incomplete => format!("the copy of counter {key} is not complete"),
            Arrival::NotOnDisk => format!(
                "counter {key} wants every change on the disk: set appendonly yes, appendfsync always and \
                 no-appendfsync-on-rewrite no"
            ),
            Arrival::TooFewReplicas { replicas, wanted } => {
                format!("counter {key} wants {wanted} replicas, and {replicas} have it")
            }
        };
        Err(self.shards.wait(&motion.to.0, reason))
    }
}

/// The life that the slots are copied from: answers of others are none.
fn life(record: &Topology, motion: &Motion) -> Result<Life, Trouble> {
    let entry = record.shard(&motion.from.0).ok_or(Trouble::Outdated)?;
    Ok(entry.life.clone())
}

/// Refused are slots that are on another way by now.
fn all_done(refused: &[Slot]) -> Result<(), Trouble> {
    match refused {
        [] => Ok(()),
        _ => Err(Trouble::Outdated),
    }
}
