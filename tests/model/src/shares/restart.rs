//! Restarts of shards, and failovers to their replicas; and arming.

use super::{
    Action, Rule, SharesModel, World,
    mover::{ARMED, BEGUN, DONE},
    state::{Memory, Mode, Slot},
};

/// A shard's memory after a restart or a failover.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Survival {
    /// As it was.
    All,
    /// As it was before its last change.
    AllButTheLast,
    /// … before the last two.
    AllButTheLastTwo,
    /// Empty.
    Nothing,
}

impl Survival {
    /// Every kind but one: a replica lags by one change at most.
    pub const LAGGING: &[Self] = &[Self::All, Self::AllButTheLast, Self::Nothing];

    /// Every kind.
    pub const EVERY: &[Self] = &[
        Self::All,
        Self::AllButTheLast,
        Self::AllButTheLastTwo,
        Self::Nothing,
    ];

    /// The number of changes that are lost.
    fn depth(self) -> usize {
        match self {
            Self::All | Self::Nothing => 0,
            Self::AllButTheLast => 1,
            Self::AllButTheLastTwo => 2,
        }
    }
}

impl SharesModel {
    pub(super) fn enabled_restarts(&self, world: &World, actions: &mut Vec<Action>) {
        if world.restarts > 0 {
            for shard in self.config.restarting.iter().copied() {
                let survives = self.config.survives.iter().copied();
                actions.extend(survives.map(|survival| Action::Restart { shard, survival }));
            }
        }
        for (shard, state) in (0..).zip(&world.shards) {
            if state.slot.is_none() {
                actions.push(Action::Arm(shard));
            }
        }
    }

    /// The shard is back, in another life: it is unarmed, and requests to the former life are lost with
    /// their connections.
    pub(super) fn restart(&self, world: &mut World, index: u8, survival: Survival) {
        world.restarts -= 1;
        world
            .network
            .requests
            .retain(|request| request.shard != index);
        let lease_max = 2 * self.config.lease;
        let shard = world.shard(index);
        let (empty, earlier) = (Memory::default(), std::mem::take(&mut shard.earlier));
        let lost = match survival {
            Survival::All => None,
            Survival::AllButTheLast => earlier.last(),
            Survival::AllButTheLastTwo => earlier.first(),
            Survival::Nothing => Some(&empty),
        };
        if let Some(memory) = lost.cloned() {
            shard.memory = memory;
        }
        if self.config.clock_behind {
            for share in &mut shard.memory.shares {
                share.left = lease_max;
            }
        }
        shard.life += 1;
        shard.slot = None;
    }

    /// The topology records the new life with a fresh epoch, and the shard is armed.
    pub(super) fn arm(&self, world: &mut World, shard: u8) {
        world.epoch += 1;
        if let Some(migration) = &mut world.migration {
            migration.forget_answers_of(shard);
        }
        let grace = self.holds(Rule::GraceAfterRestart);
        let (epoch, (mode, guard)) = (world.epoch, armament(world, shard));
        world.shard(shard).slot = Some(Slot {
            grace: if grace { self.config.lease } else { 0 },
            ..Slot::new(mode, guard, epoch)
        });
    }

    /// Keeps the memory that a restart may bring back.
    pub(super) fn remember(&self, world: &mut World, index: u8, before: Memory) {
        let survives = self.config.survives.iter();
        let depth = survives.map(|survival| survival.depth()).max().unwrap_or(0);
        let mortal = world.restarts > 0 && self.config.restarting.contains(&index);
        let shard = world.shard(index);
        if mortal && depth > 0 && before != shard.memory {
            shard.earlier.push(before);
            if shard.earlier.len() > depth {
                shard.earlier.remove(0);
            }
        }
    }
}

/// The topology's mode of the slot at that shard.
fn armament(world: &World, shard: u8) -> (Mode, (u8, u8)) {
    let own = world.epoch;
    match world.migration {
        Some(migration) if !migration.finished => match shard {
            0 => (Mode::Sealed, (migration.epoch, BEGUN)),
            _ => (Mode::Import, (migration.epoch, ARMED)),
        },
        migration if migration.is_some() == (shard == 1) => (Mode::Open, (own, DONE)),
        _ => (Mode::Shut, (own, DONE)),
    }
}
