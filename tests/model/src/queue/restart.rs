//! Restarts of the shard, and crashes of processes.

use super::{
    Event, QueueModel, Rule, World,
    state::{Memory, Phase},
};

/// What the shard's memory is after a restart.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Survival {
    /// As it was.
    All,
    /// As it was before the last script that changed it.
    AllButTheLast,
    /// The record, without the queue.
    RecordOnly,
    /// Empty.
    Nothing,
}

impl Survival {
    /// Every kind.
    pub const EVERY: &[Self] = &[
        Self::All,
        Self::AllButTheLast,
        Self::RecordOnly,
        Self::Nothing,
    ];
}

impl QueueModel {
    /// The shard dies and is back, in another life: shut until it is armed.
    pub(super) fn restart(&self, world: &mut World, survival: Survival) {
        let shard = &mut world.shard;
        let earlier = shard.earlier.take();
        match survival {
            Survival::All => {}
            Survival::AllButTheLast => {
                shard.memory = earlier.unwrap_or_else(|| shard.memory.clone());
            }
            Survival::RecordOnly => shard.memory.queue.clear(),
            Survival::Nothing => shard.memory = Memory::default(),
        }
        shard.life += 1;
        shard.armed = false;
        shard.grace = 0;
        if !shard.memory.queue.is_empty() {
            world.ledger.happened = Some(Event::RestartedWithQueue);
        }
        world.restarts -= 1;
        world.network.requests.clear();
    }

    /// A fresh epoch, and full grace.
    pub(super) fn arm(&self, world: &mut World) {
        let shard = &mut world.shard;
        shard.armed = true;
        shard.epoch += u8::from(self.holds(Rule::FreshEpochAfterRestart));
        shard.counter = 0;
        if self.holds(Rule::GraceAfterRestart) {
            shard.grace = self.config.lease;
        }
    }

    /// A process dies; what it sent stays under way.
    pub(super) fn crash(&self, world: &mut World, process: u8) {
        world.crashes -= 1;
        world.processes[usize::from(process)].phase = Phase::Idle;
    }
}
