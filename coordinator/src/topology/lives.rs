//! Shards that come back, and shards that are new.

use std::{mem, time::Duration};

use ringfence_ring::ShardId;

use super::{ClockAlarm, Migration, ShardName, Topology, TopologyError};
use crate::{
    ids::{Epoch, Life},
    shard::Grace,
};

/// The time between two alarms that one process raises alone, in recovery periods.
const ALARMS_APART: u32 = 10;

impl Topology {
    /// An unused epoch.
    pub(super) fn next_epoch(&self, unix: Duration) -> Result<Epoch, TopologyError> {
        Epoch::after(self.last_epoch, unix).ok_or(TopologyError::NoEpochs)
    }

    /// The record that gives `shard` a fresh epoch, with which the caller arms `life`; `None` if it
    /// is not a member.
    ///
    /// `life` may be the one that the record names. If its state is gone or cannot be trusted,
    /// arming it with the former epoch would repeat tokens.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoEpochs`].
    pub fn reborn(
        &self,
        shard: &ShardId,
        life: Life,
        unix: Duration,
    ) -> Result<Option<Self>, TopologyError> {
        let mut next = self.clone();
        next.version += 1;
        next.last_epoch = self.next_epoch(unix)?;
        let name = ShardName(shard.clone());
        let Some(entry) = next.shards.get_mut(&name) else {
            return Ok(None);
        };
        if entry.life != life {
            next.alarms.remove(&name);
        }
        (entry.life, entry.epoch, entry.used) = (life, next.last_epoch, true);
        Ok(Some(next))
    }

    /// The record in which `shard`, and the home if that is the same server, has another address; `None` if it is not a
    /// member.
    pub(crate) fn readdressed(&self, shard: &ShardId, address: &str) -> Option<Self> {
        let mut next = self.clone();
        next.version += 1;
        let entry = next.shards.get_mut(&ShardName(shard.clone()))?;
        let former = mem::replace(&mut entry.address, address.to_owned());
        if next.home.address == former {
            address.clone_into(&mut next.home.address);
        }
        Some(next)
    }

    /// The last alarm about the clock of `shard`, if it is so recent at `unix` that one process alone may raise no other: new
    /// locks would wait for more than a tenth of the time because of one clock.
    pub(crate) fn recent_alarm(&self, shard: &ShardId, unix: Duration) -> Option<&ClockAlarm> {
        let apart = (self.constants.grace() * ALARMS_APART).as_secs();
        let alarm = self.alarms.get(&ShardName(shard.clone()));
        alarm.filter(|alarm| alarm.unix_s.abs_diff(unix.as_secs()) < apart)
    }

    /// How long `shard` grants nothing after it is armed.
    ///
    /// It is armed with its epoch, or, if that was not used, with the epoch that takes its place.
    /// The recovery period is full, unless nothing was ever granted there in this topology's name:
    /// then it is the rest that the server's uptime leaves, or nothing if the server was declared
    /// new.
    pub fn grace(&self, shard: &ShardId, servers_are_new: bool) -> Grace {
        let grace = self.constants.grace();
        let first = self.shard(shard).is_some_and(|entry| !entry.used);
        match (first || self.is_fresh(shard), servers_are_new) {
            (true, true) => Grace::None,
            (true, false) => Grace::LessUptime(grace),
            (false, _) => Grace::Full(grace),
        }
    }

    /// Whether `shard` began a recovery period between the record `before` and this one: it was armed anew, and may have
    /// granted locks before.
    pub(crate) fn recovers_since(&self, before: &Self, shard: &ShardId) -> bool {
        let (Some(old), Some(new)) = (before.shard(shard), self.shard(shard)) else {
            return false;
        };
        old.used && old.epoch != new.epoch && !self.is_fresh(shard)
    }

    /// Whether `shard` has not restarted since the founding, or has not been given a slot since it
    /// joined: only for messages.
    ///
    /// Each founder is armed with one of the first epochs after the founding. A shard that restarts before every founder
    /// is armed counts as new, too; once a shard was declared dead, none does: its heirs recover.
    pub fn is_new(&self, shard: &ShardId) -> bool {
        let founders_last = self.founded.0 + self.shards.len() as u64;
        let first = self
            .shard(shard)
            .is_some_and(|entry| entry.epoch.0 <= founders_last);
        first && self.failed.is_empty() || self.is_fresh(shard)
    }

    /// Whether `shard` joined and has not been given a slot: no lock was granted there.
    ///
    /// A shard that joined and then lost its life while the first slots came to it is not fresh: it
    /// may have granted some of their keys.
    pub fn is_fresh(&self, shard: &ShardId) -> bool {
        let Some(entry) = self.shard(shard) else {
            return false;
        };
        let before_any_move = |migration: &Migration| {
            let concerned = migration.from.0 == *shard || migration.to.0 == *shard;
            !concerned || migration.epoch > entry.epoch
        };
        self.table.quota(shard) == 0 && self.migrations.iter().all(before_any_move)
    }
}
