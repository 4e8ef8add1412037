//! Restarts of shards, and failovers to their replicas.

use super::{
    Action, Rule, SlotModel, World,
    state::{Memory, Shard},
};

/// What a shard's memory is after a restart or a failover.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Survival {
    /// As it was.
    All,
    /// As it was before the last script that changed it.
    AllButTheLast,
    /// … before the last two.
    AllButTheLastTwo,
    /// Empty.
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

    /// Those of a replica that lags.
    pub const LAGGING: &[Self] = &[Self::AllButTheLast, Self::AllButTheLastTwo];

    /// How many changes back.
    fn depth(self) -> usize {
        match self {
            Self::All | Self::Nothing => 0,
            Self::AllButTheLast => 1,
            Self::AllButTheLastTwo => 2,
        }
    }
}

impl SlotModel {
    pub(super) fn enabled_restarts(&self, world: &World, actions: &mut Vec<Action>) {
        if world.left.restarts > 0 {
            for shard in self.config.restarting.iter().copied() {
                let survives = self.config.survives.iter().copied();
                actions.extend(survives.map(|survival| Action::Restart { shard, survival }));
            }
        }
        for (shard, state) in (0..).zip(&world.shards) {
            if world.topology.is_removed(shard) {
                continue;
            }
            self.enabled_arms(world, shard, state, actions);
        }
    }

    fn enabled_arms(&self, world: &World, shard: u8, state: &Shard, actions: &mut Vec<Action>) {
        if state.slot.is_some() {
            if world.left.raises > 0 {
                actions.push(Action::Raise(shard));
            }
        } else if world.topology.members[usize::from(shard)].life == state.life {
            actions.extend([false, true].map(|late| Action::Arm { shard, late }));
        } else {
            actions.push(Action::Record(shard));
        }
    }

    /// The shard is back, in another life: nothing is there under its name until it is armed, and
    /// what was sent to the former is lost with its connections.
    pub(super) fn restart(&self, world: &mut World, index: u8, survival: Survival) {
        let lease_max = 2 * self.config.lease;
        let shard = world.shard(index);
        let Memory { slot, mut record } = match survival {
            Survival::All => shard.memory(),
            Survival::AllButTheLast => shard.earlier.last().cloned().unwrap_or(shard.memory()),
            Survival::AllButTheLastTwo => shard.earlier.first().cloned().unwrap_or(shard.memory()),
            Survival::Nothing => Memory::default(),
        };
        if let Some(record) = record.as_mut().filter(|_| self.config.clock_behind) {
            record.left = lease_max;
        }
        shard.earlier.clear();
        shard.record = record;
        if self.breaks(Rule::LifeNamesEveryFailover) {
            shard.slot = slot;
        } else {
            shard.life += 1;
            shard.slot = None;
            shard.former = slot;
            shard.read = None;
        }
        world.left.restarts -= 1;
        for process in &mut world.processes {
            process.released &= !(1 << index);
        }
    }

    /// Keeps what a restart may bring back.
    pub(super) fn remember(&self, world: &mut World, shard: u8, before: Memory) {
        let kept = (self.config.survives.iter())
            .map(|survival| survival.depth())
            .max();
        let mortal = world.left.restarts > 0 && self.config.restarting.contains(&shard);
        let shard = world.shard(shard);
        if let Some(kept) = kept.filter(|kept| mortal && *kept > 0 && before != shard.memory()) {
            shard.earlier.push(before);
            if shard.earlier.len() > kept {
                shard.earlier.remove(0);
            }
        }
    }
}
