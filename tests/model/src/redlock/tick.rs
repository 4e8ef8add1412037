//! Time.

use super::{
    RedlockModel, Rule, World,
    state::{Client, LEAD, Shard},
};

impl RedlockModel {
    /// One tick, at every shard, at every client, and for all that is under way.
    pub(super) fn tick(&self, world: &mut World) {
        for (index, shard) in (0..).zip(&mut world.shards) {
            self.tick_shard(index, shard);
        }
        for client in &mut world.clients {
            self.tick_client(client);
        }
        self.tick_views(world);
        for message in &mut world.late {
            message.age = self.config.lease.min(message.age + 1);
        }
    }

    fn tick_shard(&self, index: u8, shard: &mut Shard) {
        shard.grace = shard.grace.saturating_sub(1);
        let Some(record) = &mut shard.record else {
            return;
        };
        record.left -= 1;
        if record.left == 0 {
            let expired = record.nonce;
            shard.record = None;
            if index == LEAD && self.breaks(Rule::SupersedeTheReleased) {
                shard.released = Some(expired);
            }
        }
    }

    fn tick_client(&self, client: &mut Client) {
        for rank in &mut client.ranks {
            rank.left = rank.left.saturating_sub(1);
        }
        self.gone(client);
    }
}
