//! A shard that is gone for good: its slots go to other shards, and no client asks it any more.
//! Pure.
//!
//! ```text
//! decommission: dead, its slots to others ─► no view has it ─► let_open: at e ─► force_open(e) there ─► opened
//! ```
//!
//! Its grants end by themselves: after a view lease no engine believes in them, or a person attests
//! that no client can reach the shard. Holders put their locks back at the shards that follow.

use std::{collections::BTreeMap, time::Duration};

use ringfence_ring::{RingError, ShardId, Slot, Table};
use serde::{Deserialize, Serialize};

use super::{
    Goal, Opening, ShardName, Topology, TopologyError, Weights, ranks::Ranks, resize::membership,
};
use crate::{
    ids::{Epoch, Life, MapVersion, Token},
    shard::{Mode, Step},
};

/// A shard that was declared dead. The record keeps it for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedShard {
    /// Its name. No other shard gets it.
    pub shard: ShardName,
    /// Its address.
    pub address: String,
    /// Lives in which it still believes that it has slots.
    pub lives: Vec<Life>,
    /// The epoch of the change that declared it dead.
    pub epoch: Epoch,
}

/// The reason why a shard cannot be declared dead.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecommissionError {
    /// It is not a member.
    #[error("shard {id} is not a member; the members are {members}")]
    Unknown {
        /// The shard.
        id: ShardId,
        /// The present members.
        members: String,
    },
    /// No shard would be left for its slots.
    #[error("shard {id} is the last one: add another shard first, or found a new topology")]
    Last {
        /// The shard.
        id: ShardId,
    },
    /// The topology's record is there: it has to be recovered first.
    #[error(
        "shard {id}, {address}, keeps the topology's record; run: ringfence ring recover --attest-dead {id}"
    )]
    KeepsRecord {
        /// The shard.
        id: ShardId,
        /// Its address.
        address: String,
    },
    /// Every other shard has a replica of one of its slots, or gets or gives one just now.
    #[error(
        "slot {slot} of shard {id} has no place: another replica of it is migrating; \
        let the resize move it, then remove the shard"
    )]
    ReplicasMigrate {
        /// The shard.
        id: ShardId,
        /// The slot.
        slot: Slot,
    },
    /// The record contradicts itself, or fewer shards or zones than replicas would be left.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Every epoch has been allotted.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl Topology {
    /// The record that declares `shard` dead. Slots that it owned, or that were moving from or to
    /// it, have to be opened by force: its own slots at the shards that the resize under way, or
    /// the weights, determine; slots moving from it at their next shard, and slots moving to it at
    /// their former shard.
    ///
    /// With supervised removal, a person must attest that no client can reach it any more, and that
    /// it will be restarted or flushed before one can. This record alone does nothing: swap it in, with leased
    /// removal [let the slots be opened](Self::let_open), then [open them](Self::force_opens).
    ///
    /// # Errors
    ///
    /// [`DecommissionError`].
    pub fn decommission(&self, shard: &ShardId, unix: Duration) -> Result<Self, DecommissionError> {
        let gone = ShardName(shard.clone());
        let failed = self.failed_shard(&gone, self.next_epoch(unix)?)?;
        let mut others = self.weights();
        others.remove(&gone);
        if others.is_empty() {
            return Err(DecommissionError::Last { id: shard.clone() });
        }
        let possible = |weights: &Weights| membership(&self.table, weights).is_ok();
        let goal = self.goal.as_ref();
        let goal = goal.and_then(|goal| goal.without(&gone, possible));
        let target = goal.as_ref().map_or(&others, |goal| &goal.after);
        let heirs = self.heirs(&gone, target)?;

        let mut next = self.clone();
        (next.version, next.last_epoch) = (self.version + 1, failed.epoch);
        for (slot, heir) in &heirs {
            next.table.give(*slot, &heir.0)?;
        }
        next.table = next.table.among(&membership(&self.table, &others)?)?;
        next.shards.remove(&gone);
        next.goal = goal;
        next.migrations
            .retain(|migration| migration.from != gone && migration.to != gone);
        next.openings.retain(|opening| opening.to != gone);
        let opens = (self.constants.view_lease().is_none()).then_some(failed.epoch);
        next.openings.extend(openings(failed.epoch, opens, heirs));
        next.failed.push(failed);
        next.mark_changed(self);
        Ok(next)
    }

    /// The request for `failed`, if it is reached in one of its lives: it tells it that it has no
    /// slots.
    pub fn tell_failed(&self, failed: &FailedShard) -> Step {
        Step {
            incarnation: self.incarnation,
            copy: (self.version, self.encode()),
            map: MapVersion::UNKNOWN,
            epoch: failed.epoch,
            mode: Mode::Shut,
            slots: self.table.all_slots().collect(),
            above: Token::default(),
        }
    }

    /// The entry of the record for `gone`.
    fn failed_shard(
        &self,
        gone: &ShardName,
        epoch: Epoch,
    ) -> Result<FailedShard, DecommissionError> {
        let Some(entry) = self.shards.get(gone) else {
            let names: Vec<_> = self.shards.keys().map(|name| name.0.as_str()).collect();
            return Err(DecommissionError::Unknown {
                id: gone.0.clone(),
                members: names.join(", "),
            });
        };
        let address = entry.address.clone();
        if address == self.home.address {
            let id = gone.0.clone();
            return Err(DecommissionError::KeepsRecord { id, address });
        }
        Ok(FailedShard {
            shard: gone.clone(),
            address,
            lives: vec![entry.life.clone()],
            epoch,
        })
    }

    /// The new owner of each slot that `gone` had or that was moving from or to it, on the way to
    /// `target`.
    fn heirs(
        &self,
        gone: &ShardName,
        target: &Weights,
    ) -> Result<BTreeMap<Slot, ShardName>, DecommissionError> {
        let mut heirs = BTreeMap::new();
        let mut there: Table = self.table.clone();
        for migration in &self.migrations {
            let heir = match migration.to == *gone {
                true => &migration.from,
                false => &migration.to,
            };
            for &slot in &migration.slots {
                there.give(slot, &heir.0)?;
                if migration.from == *gone || migration.to == *gone {
                    heirs.insert(slot, heir.clone());
                }
            }
        }
        let plan = there.plan(&membership(&there, target)?)?;
        let ranks = Ranks::of(self);
        for slot in there.slots_of(&gone.0) {
            let planned = plan.table().owner(slot);
            let heir = match ranks.has_room(slot, planned) {
                true => Some(planned),
                false => ranks.heir(slot, plan.table().membership()),
            };
            let heir = heir.ok_or_else(|| DecommissionError::ReplicasMigrate {
                id: gone.0.clone(),
                slot,
            })?;
            heirs.insert(slot, ShardName(heir.clone()));
        }
        Ok(heirs)
    }
}

impl Goal {
    /// The same without `gone`. If its begin or its end is not `possible` any more, the other is both;
    /// `None` if neither is.
    fn without(&self, gone: &ShardName, possible: impl Fn(&Weights) -> bool) -> Option<Self> {
        let Self {
            mut before,
            mut after,
        } = self.clone();
        before.remove(gone);
        after.remove(gone);
        match (possible(&before), possible(&after)) {
            (false, false) => return None,
            (false, true) => before.clone_from(&after),
            (true, false) => after.clone_from(&before),
            (true, true) => {}
        }
        Some(Self { before, after })
    }
}

/// One per shard.
fn openings(
    epoch: Epoch,
    opens: Option<Epoch>,
    heirs: BTreeMap<Slot, ShardName>,
) -> impl Iterator<Item = Opening> {
    let mut of_shard: BTreeMap<ShardName, Vec<Slot>> = BTreeMap::new();
    for (slot, heir) in heirs {
        of_shard.entry(heir).or_default().push(slot);
    }
    let opening = move |(to, slots)| Opening {
        epoch,
        opens,
        to,
        slots,
        first: false,
    };
    of_shard.into_iter().map(opening)
}
