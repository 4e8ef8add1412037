//! Whether a record that was read agrees with itself: a damaged one is refused before anything is done by it.

use ringfence_ring::{Slot, Weight};

use super::{Migration, Opening, ShardName, Topology};
use crate::{ids::Epoch, limits::EPOCH_MAX};

/// Versions are numbers of Lua's too.
const VERSION_MAX: u64 = 1 << 53;

impl Topology {
    /// Refuses a record that contradicts itself, with a reason.
    pub(super) fn check(&self) -> Result<(), String> {
        self.constants.check()?;
        self.check_numbers()?;
        self.check_members()?;
        self.check_migrations()?;
        self.check_openings()
    }

    fn check_numbers(&self) -> Result<(), String> {
        let changed = self.shards.values().map(|entry| entry.changed.0);
        for version in changed.chain([self.version, self.declared.0]) {
            if version > VERSION_MAX {
                return Err(format!("version is {version}, must be at most 2^53"));
            }
        }
        let epochs = self.shards.values().map(|entry| entry.epoch);
        let epochs = epochs.chain(self.migrations.iter().map(|migration| migration.epoch));
        let openings = self.openings.iter();
        let epochs = epochs
            .chain(openings.flat_map(|opening| opening.opens.into_iter().chain([opening.epoch])));
        let epochs = epochs.chain(self.failed.iter().map(|failed| failed.epoch));
        let last = self.last_epoch;
        for epoch in epochs.chain([self.founded, last]) {
            if epoch > last || epoch >= Epoch(EPOCH_MAX) {
                return Err(format!(
                    "epoch is {epoch}, must be at most last_epoch, {last}, and less than {EPOCH_MAX}"
                ));
            }
        }
        let incarnation = self.incarnation.number;
        match incarnation < EPOCH_MAX {
            true => Ok(()),
            false => Err(format!(
                "incarnation is {incarnation}, must be less than {EPOCH_MAX}"
            )),
        }
    }

    /// Every shard of the table and of the goal has an entry.
    fn check_members(&self) -> Result<(), String> {
        let goal = self.goal.iter();
        let goal = goal.flat_map(|goal| goal.before.iter().chain(&goal.after));
        for (shard, &weight) in goal.clone() {
            Weight::new(weight).map_err(|error| format!("goal of shard {}: {error}", shard.0))?;
        }
        let in_goal = goal.map(|(shard, _)| &shard.0);
        let mut named = in_goal.chain(self.table.shards());
        match named.find(|shard| self.shard(shard).is_none()) {
            Some(shard) => Err(format!(
                "shard {shard} has slots, or is to have some, and no entry"
            )),
            None => Ok(()),
        }
    }

    fn check_migrations(&self) -> Result<(), String> {
        for Migration {
            epoch,
            from,
            to,
            slots,
            ..
        } in &self.migrations
        {
            let members = self.shards.contains_key(to) && self.owns(from, slots);
            if !members {
                let (from, to) = (&from.0, &to.0);
                return Err(format!(
                    "the move of epoch {epoch} from {from} to {to} does not fit the table"
                ));
            }
        }
        Ok(())
    }

    fn check_openings(&self) -> Result<(), String> {
        let mut openings = self.openings.iter();
        match openings.find(|opening| !self.owns(&opening.to, &opening.slots)) {
            Some(Opening { epoch, to, .. }) => Err(format!(
                "the opening of epoch {epoch} by {} does not fit the table",
                to.0
            )),
            None => Ok(()),
        }
    }

    /// Whether `slots` are slots of the member `shard`, in order.
    fn owns(&self, shard: &ShardName, slots: &[Slot]) -> bool {
        let all = self.table.all_slots().len();
        let its = |slot: &Slot| slot.index() < all && *self.table.owner(*slot) == shard.0;
        let in_order = slots.is_sorted_by(|one, next| one < next);
        self.shards.contains_key(shard) && in_order && slots.iter().all(its)
    }
}
