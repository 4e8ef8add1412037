//! A resize begins, and is turned back: the changes of the record. Pure.

use std::{collections::BTreeMap, fmt, time::Duration};

use ringfence_ring::{Membership, RingError, ShardId, Table, Weight, Zone};
use ringfence_segment_lock::{Effect, impl_failure};

use super::{
    FailedShard, Founder, Goal, ShardEntry, ShardName, Topology, TopologyError, Weights,
    migration::moves_of,
};
use crate::ids::MapVersion;

/// Shards that join, shards that leave, and new weights, all at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Shards that join.
    pub add: Vec<Founder>,
    /// Shards that leave, each after its last slot has moved away.
    pub remove: Vec<ShardId>,
    /// New weights of shards that stay.
    pub weigh: BTreeMap<ShardId, Weight>,
}

/// The reason why a resize cannot begin, or be turned back.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// One at a time: wait for it, or turn it back.
    #[error("a resize is under way already, {goal}: wait for it, or abort it")]
    UnderWay {
        /// Its weights before and after.
        goal: String,
    },
    /// There is nothing to turn back.
    #[error("no resize is under way")]
    NoneUnderWay,
    /// A shard to be removed or weighed is not a member, or not any more.
    #[error("shard {id} is not a member; the members are {members}")]
    Unknown {
        /// The shard.
        id: ShardId,
        /// The present members.
        members: String,
    },
    /// A new shard needs a name of its own.
    #[error("shard id {id} is taken, by {address}")]
    IdTaken {
        /// The id.
        id: ShardId,
        /// The address of the shard with that name.
        address: String,
    },
    /// A server is one shard at most.
    #[error("address {address} is taken, by shard {id}")]
    AddressTaken {
        /// The address, or another of the same server.
        address: String,
        /// The shard at that address.
        id: ShardId,
    },
    /// A shard that was declared dead may return only in another life, and by another name.
    #[error("shard {id}, {address}, was declared dead: restart its server, and give it another id")]
    DeclaredDead {
        /// The shard of that id, or in that life.
        id: ShardId,
        /// Its address.
        address: String,
    },
    /// The members and their weights are as requested already.
    #[error("nothing changes: the members are {members}")]
    NothingChanges {
        /// The members and their weights.
        members: String,
    },
    /// No shard would be left, or there would be too many.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Every epoch has been allotted.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl ResizeError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnderWay { .. } => true,
            Self::Topology(error) => error.is_retryable(),
            Self::NoneUnderWay
            | Self::Unknown { .. }
            | Self::IdTaken { .. }
            | Self::AddressTaken { .. }
            | Self::DeclaredDead { .. }
            | Self::NothingChanges { .. }
            | Self::Ring(_) => false,
        }
    }

    /// Whether the record may have been changed.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Topology(error) => error.effect(),
            Self::UnderWay { .. }
            | Self::NoneUnderWay
            | Self::Unknown { .. }
            | Self::IdTaken { .. }
            | Self::AddressTaken { .. }
            | Self::DeclaredDead { .. }
            | Self::NothingChanges { .. }
            | Self::Ring(_) => Effect::None,
        }
    }

    /// The topology does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl_failure!(ResizeError);

impl Topology {
    /// The record that begins `change`: new members join, nothing moves yet.
    ///
    /// This record alone does nothing: swap it in, then run a [`Mover`](crate::mover::Mover); or
    /// inspect its [`preview`](Self::preview).
    ///
    /// # Errors
    ///
    /// [`ResizeError`]: names the field, the value and the limit.
    pub fn begin(&self, change: Change, unix: Duration) -> Result<Self, ResizeError> {
        if let Some(goal) = &self.goal {
            let goal = goal.to_string();
            return Err(ResizeError::UnderWay { goal });
        }
        let before = self.weights();
        let mut next = self.clone();
        next.version += 1;
        let zones: BTreeMap<_, _> = change
            .add
            .iter()
            .filter_map(|founder| Some((founder.id.clone(), founder.zone.clone()?)))
            .collect();
        let after = next.apply(change, unix)?;
        if after == before {
            let members = describe(&before);
            return Err(ResizeError::NothingChanges { members });
        }
        members_of(&self.table, &after, &zones)?;
        let mut both = before.clone();
        both.extend(after.clone());
        let both = members_of(&self.table, &both, &zones)?;
        next.table = self.table.among(&both)?;
        next.goal = Some(Goal { before, after });
        Ok(next)
    }

    /// The record that turns the resize under way back; turning back twice continues it.
    ///
    /// The reverse replaces every move under way, with a fresh epoch. Slots that have arrived go
    /// back by later moves.
    ///
    /// # Errors
    ///
    /// [`ResizeError::NoneUnderWay`], [`TopologyError::NoEpochs`].
    pub fn abort(&self, unix: Duration) -> Result<Self, ResizeError> {
        let Some(goal) = self.goal.clone() else {
            return Err(ResizeError::NoneUnderWay);
        };
        let mut next = self.clone();
        next.version += 1;
        next.goal = Some(Goal {
            before: goal.after,
            after: goal.before,
        });
        if self.migrations.is_empty() {
            return Ok(next);
        }
        next.last_epoch = self.next_epoch(unix)?;
        for migration in &self.migrations {
            for &slot in &migration.slots {
                next.table.give(slot, &migration.to.0)?;
            }
        }
        let under_way = self.migrations.iter().cloned();
        let back = under_way.map(|migration| (migration.to, migration.from, migration.slots));
        next.migrations = moves_of(next.last_epoch, back);
        Ok(next)
    }

    /// The members' weights, by the table.
    pub fn weights(&self) -> Weights {
        let members = self.table.membership();
        let ids = members.shards().iter().cloned().map(ShardName);
        ids.zip(members.weights().iter().map(|weight| weight.get()))
            .collect()
    }

    /// Adds the shards that join; returns the members and weights at the end.
    fn apply(&mut self, change: Change, unix: Duration) -> Result<Weights, ResizeError> {
        let mut after = self.weights();
        for id in change.remove {
            let gone = after.remove(&ShardName(id.clone()));
            gone.ok_or_else(|| self.unknown(&id))?;
        }
        for (id, weight) in change.weigh {
            let known = after.get_mut(&ShardName(id.clone()));
            *known.ok_or_else(|| self.unknown(&id))? = weight.get();
        }
        if !change.add.is_empty() {
            self.last_epoch = self.next_epoch(unix)?;
        }
        for founder in change.add {
            self.check_free(&founder)?;
            let Founder {
                id,
                address,
                life,
                weight,
                ..
            } = founder;
            let (epoch, changed) = (self.last_epoch, MapVersion(self.version));
            let entry = ShardEntry {
                address,
                life,
                epoch,
                used: false,
                changed,
            };
            after.insert(ShardName(id.clone()), weight.get());
            self.shards.insert(ShardName(id), entry);
        }
        Ok(after)
    }

    /// Refuses a new shard with the name, the address or the life of another.
    fn check_free(&self, founder: &Founder) -> Result<(), ResizeError> {
        if let Some(entry) = self.shard(&founder.id) {
            return Err(ResizeError::IdTaken {
                id: founder.id.clone(),
                address: entry.address.clone(),
            });
        }
        let was = |failed: &&FailedShard| {
            failed.shard.0 == founder.id || failed.lives.contains(&founder.life)
        };
        if let Some(failed) = self.failed.iter().find(was) {
            return Err(ResizeError::DeclaredDead {
                id: failed.shard.0.clone(),
                address: failed.address.clone(),
            });
        }
        let same =
            |entry: &ShardEntry| entry.address == founder.address || entry.life == founder.life;
        match self.shards.iter().find(|(_, entry)| same(entry)) {
            Some((ShardName(id), _)) => Err(ResizeError::AddressTaken {
                address: founder.address.clone(),
                id: id.clone(),
            }),
            None => Ok(()),
        }
    }

    fn unknown(&self, id: &ShardId) -> ResizeError {
        let names: Vec<_> = self.shards.keys().map(|name| name.0.as_str()).collect();
        ResizeError::Unknown {
            id: id.clone(),
            members: names.join(", "),
        }
    }
}

impl fmt::Display for Goal {
    /// `a 1, b 1 → a 1, b 2, c 1`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} → {}",
            describe(&self.before),
            describe(&self.after)
        )
    }
}

fn describe(weights: &Weights) -> String {
    let members = weights.iter();
    let members: Vec<_> = members
        .map(|(name, weight)| format!("{} {weight}", name.0))
        .collect();
    members.join(", ")
}

/// The shards and weights in `weights`, in the zones that `table` gives them, with its slots and
/// replicas.
pub(super) fn membership(table: &Table, weights: &Weights) -> Result<Membership, RingError> {
    members_of(table, weights, &BTreeMap::new())
}

/// The same, with the `zones` of shards that join.
fn members_of(
    table: &Table,
    weights: &Weights,
    zones: &BTreeMap<ShardId, Zone>,
) -> Result<Membership, RingError> {
    let members = weights
        .iter()
        .map(|(name, &weight)| Ok((name.0.clone(), Weight::new(weight)?)));
    let members = members.collect::<Result<Vec<_>, RingError>>()?;
    let there = table.membership();
    let zone_of = |id: &ShardId| there.zone(id).or_else(|| zones.get(id)).cloned();
    Membership::new(table.slots(), members)?.replicated(there.replicas(), zone_of)
}
