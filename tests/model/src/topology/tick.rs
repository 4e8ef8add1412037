use super::{
    TopologyModel, World,
    state::{Lock, Shard},
};

impl TopologyModel {
    /// Time goes on, everywhere at one pace.
    pub(super) fn tick(&self, world: &mut World) {
        for guard in &mut world.guards {
            guard.left -= 1;
        }
        world.guards.retain(|guard| guard.left > 0);
        for shard in &mut world.shards {
            pass(shard);
            if let Some(former) = &mut shard.former {
                pass(former);
            }
        }
    }
}

fn pass(shard: &mut Shard) {
    if let Some(Lock { left, .. }) = &mut shard.lock {
        *left -= 1;
    }
    shard.lock = shard.lock.filter(|lock| lock.left > 0);
    if let Some(slot) = &mut shard.slot {
        slot.grace = slot.grace.saturating_sub(1);
    }
}
