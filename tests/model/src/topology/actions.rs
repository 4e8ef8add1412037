//! What may happen, and what then does.

use super::{Step, Survival, TopologyModel, View, World};

/// One step. Numbers are shards, engines, or places among what was read, is moved or is held.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A shard is asked for the lock.
    Grant(u8),
    /// A guard is renewed.
    Renew(usize),
    /// A guard goes along with its slot.
    Adopt(usize),
    /// A home's record gets a move.
    Plan {
        /// The home.
        home: u8,
        /// Where the slot goes.
        to: u8,
    },
    /// … gets a shard's new life.
    RecordLife {
        /// The home.
        home: u8,
        /// The shard.
        shard: u8,
    },
    /// … gets a fresh epoch for a shard that is armed.
    Distrust {
        /// The home.
        home: u8,
        /// The shard.
        shard: u8,
    },
    /// … gets a new owner.
    Finish {
        /// The home.
        home: u8,
    },
    /// A mover takes a step.
    Step {
        /// Of which move.
        mover: usize,
        /// Which.
        step: Step,
    },
    /// A shard is armed.
    Arm {
        /// In the name of which record.
        record: usize,
        /// Which.
        shard: u8,
    },
    /// A shard keeps a copy.
    Copy {
        /// Of which record.
        record: usize,
        /// Which.
        shard: u8,
    },
    /// An engine that finds no record in force asks every member.
    Survey {
        /// Which.
        engine: u8,
        /// What it knows itself.
        view: View,
    },
    /// It raises a fence.
    Fence {
        /// Which.
        engine: u8,
        /// The shard.
        shard: u8,
    },
    /// It puts a record in force.
    Restore(u8),
    /// It gives up, or dies.
    GiveUp(u8),
    /// A home dies and comes back.
    RestartHome {
        /// Which.
        shard: u8,
        /// With what record.
        survival: Survival,
    },
    /// Another member does, empty.
    Restart(u8),
    /// A member dies.
    Die(u8),
    /// … and comes back.
    Return(u8),
    /// All members come back empty.
    LoseAll,
    /// The address of a member comes to lead to its replica, or back.
    Retarget {
        /// Which.
        shard: u8,
        /// Whether the replica has the lock.
        lock: bool,
    },
    /// A member is flushed.
    Flush(u8),
}

impl TopologyModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        self.enabled_locks(world, actions);
        self.enabled_swaps(world, actions);
        self.enabled_steps(world, actions);
        self.enabled_arms(world, actions);
        self.enabled_recoveries(world, actions);
        self.enabled_restarts(world, actions);
    }

    /// The state after it; `None` if it changes nothing.
    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.ledger.happened = None;
        self.happen(&mut next, action);
        self.forget(&mut next);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Grant(shard) => self.grant(world, shard),
            Action::Renew(guard) => self.renew(world, guard),
            Action::Adopt(guard) => self.adopt(world, guard),
            Action::Plan { home, to } => self.plan(world, home, to),
            Action::RecordLife { home, shard } => self.record_life(world, home, shard),
            Action::Distrust { home, shard } => self.distrust(world, home, shard),
            Action::Finish { home } => self.finish(world, home),
            Action::Step { mover, step } => self.step(world, mover, step),
            Action::Arm { record, shard } => self.arm(world, record, shard),
            Action::Copy { record, shard } => self.copy(world, record, shard),
            Action::Survey { engine, view } => self.survey(world, engine, view),
            Action::Fence { engine, shard } => self.fence(world, engine, shard),
            Action::Restore(engine) => self.restore(world, engine),
            Action::GiveUp(engine) => world.recoveries[usize::from(engine)] = None,
            Action::RestartHome { shard, survival } => self.restart_home(world, shard, survival),
            Action::Restart(shard) => self.restart(world, shard),
            Action::Die(shard) => self.die(world, shard),
            Action::Return(shard) => self.come_back(world, shard),
            Action::LoseAll => self.lose_all(world),
            Action::Retarget { shard, lock } => self.retarget(world, shard, lock),
            Action::Flush(shard) => self.flush(world, shard),
        }
    }
}
