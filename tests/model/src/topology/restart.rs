//! Members that die and come back.

use super::{
    Action, TopologyModel, World,
    record::{Incarnation, Record, Version},
    state::Shard,
};

/// What record a home comes back with. Its locks are there only if all of it is.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Survival {
    /// The last.
    All,
    /// The one before.
    AllButTheLast,
    /// … before that.
    AllButTheLastTwo,
    /// None.
    Nothing,
}

impl Survival {
    /// Every kind.
    pub const EVERY: &[Self] = &[
        Self::All,
        Self::AllButTheLast,
        Self::AllButTheLastTwo,
        Self::Nothing,
    ];
}

impl TopologyModel {
    pub(super) fn enabled_restarts(&self, world: &World, actions: &mut Vec<Action>) {
        let left = &world.left;
        for (shard, state) in world.each() {
            let is_home = state.record.is_some();
            if is_home && state.up && left.home_restarts > 0 {
                let survives = self.config.survives.iter().copied();
                actions.extend(survives.map(|survival| Action::RestartHome { shard, survival }));
            }
            if !is_home && state.up && left.restarts > 0 {
                actions.push(Action::Restart(shard));
            }
            if !is_home && state.up && left.retargets > 0 {
                let may_have = state.former.is_none() && state.lock.is_some();
                let locks = [false, true].into_iter().take(1 + usize::from(may_have));
                actions.extend(locks.map(|lock| Action::Retarget { shard, lock }));
            }
            if !is_home && state.up && left.flushes > 0 {
                actions.push(Action::Flush(shard));
            }
            if !state.up {
                actions.push(Action::Return(shard));
            } else if left.deaths > 0 {
                actions.push(Action::Die(shard));
            }
        }
        if left.losses > 0 {
            actions.push(Action::LoseAll);
        }
    }

    pub(super) fn restart_home(&self, world: &mut World, index: u8, survival: Survival) {
        let shard = world.shard_mut(index);
        let earlier = |back: usize| shard.earlier.get(back).copied();
        let (record, lock) = match survival {
            Survival::All => (shard.record, shard.lock),
            Survival::AllButTheLast => (earlier(0), None),
            Survival::AllButTheLastTwo => (earlier(1), None),
            Survival::Nothing => (None, None),
        };
        if record.is_none() && survival != Survival::Nothing {
            return;
        }
        world.left.home_restarts -= 1;
        let shard = world.begin_life(index, record);
        shard.lock = lock;
    }

    pub(super) fn restart(&self, world: &mut World, shard: u8) {
        world.left.restarts -= 1;
        world.begin_life(shard, None);
    }

    /// It does not answer any more, and will not in this life: a person attests it.
    pub(super) fn die(&self, world: &mut World, shard: u8) {
        world.left.deaths -= 1;
        world.shard_mut(shard).up = false;
    }

    pub(super) fn come_back(&self, world: &mut World, shard: u8) {
        let record = world.shard(shard).record;
        world.begin_life(shard, record).up = true;
    }

    /// The replica has the keys that are not named by the life, maybe without the last write. The server of before lives on, and may be
    /// led to again, as it is then.
    pub(super) fn retarget(&self, world: &mut World, index: u8, lock: bool) {
        world.left.retargets -= 1;
        let known = world.read.iter().copied().chain(self.in_force(world));
        let newest = known.map(|record| record.version()).max();
        let mut left = world.shard(index).clone();
        let shard = if let Some(back) = left.former.take() {
            let Shard {
                last_life, used, ..
            } = left;
            *world.shard_mut(index) = Shard {
                last_life,
                used,
                ..*back
            };
            world.shard_mut(index)
        } else {
            world.begin_life(index, None)
        };
        if lock {
            shard.lock = left.lock;
        }
        shard.led_here = newest.unwrap_or_default();
        shard.former = Some(Box::new(left));
    }

    /// All keys are deleted: nothing is found, under the name of no life.
    pub(super) fn flush(&self, world: &mut World, index: u8) {
        world.left.flushes -= 1;
        let life = world.shard(index).life;
        let last_life = world.shard(index).last_life;
        let shard = world.begin_life(index, None);
        (shard.life, shard.last_life) = (life, last_life);
    }

    pub(super) fn lose_all(&self, world: &mut World) {
        world.left.losses -= 1;
        for shard in 0..self.config.shards {
            world.begin_life(shard, None);
        }
    }
}

impl World {
    /// Keys named by a life are found by no other.
    fn begin_life(&mut self, shard: u8, record: Option<Record>) -> &mut Shard {
        let shard = self.shard_mut(shard);
        shard.last_life += 1;
        shard.life = shard.last_life;
        shard.slot = None;
        shard.fence = Incarnation::default();
        shard.copy = None;
        shard.record = record;
        shard.earlier.clear();
        shard.lock = None;
        shard.named_until = Version::default();
        shard
    }
}
