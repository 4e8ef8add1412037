//! What can make no difference any more is forgotten, so that states that differ in nothing else
//! are one.

use super::{
    Ask, Message, RedlockModel, World,
    state::{Client, Phase, SHARDS},
};

impl RedlockModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        self.observe(world);
        let late = std::mem::take(&mut world.late);
        world.late = (late.iter().copied())
            .filter(|message| self.matters(world, &late, message))
            .map(|message| self.aged(world, message))
            .collect();
        world.late.sort();
        for index in 0..SHARDS {
            let shard = world.shard(index);
            if shard.released.is_some() && world.clients.iter().all(done) {
                world.shard_mut(index).released = None;
            }
        }
        for index in [0, 1] {
            let behind = self.is_behind(world, index);
            let client = &mut world.clients[usize::from(index)];
            client.behind &= behind;
            let is_its = |message: &Message| message.nonce == client.nonce;
            client.round *= u8::from(world.late.iter().any(is_its));
            forget_asked(client);
        }
    }

    fn matters(&self, world: &World, late: &[Message], message: &Message) -> bool {
        let Message { nonce, shard, .. } = *message;
        let client = world.client(nonce.process);
        let current = client.nonce == nonce && (client.is_acquiring() || client.holds());
        if message.answer.is_some() {
            let in_time = message.age < self.config.lease;
            return current && in_time && !self.is_given_back(client, message);
        }
        if message.ask != Ask::Release {
            return true;
        }
        let recorded = (world.shard(shard).record).is_some_and(|record| record.nonce == nonce);
        let before = |other: &Message| {
            other.nonce == nonce && other.shard == shard && other.ask != Ask::Release
        };
        current || recorded || late.iter().any(before)
    }

    /// The age of what no client waits for is no longer read.
    fn aged(&self, world: &World, mut message: Message) -> Message {
        let client = world.client(message.nonce.process);
        let current = client.nonce == message.nonce && client.phase != Phase::Idle;
        if !current || message.ask == Ask::Release {
            message.age = self.config.lease;
        }
        message
    }
}

/// Whether it begins nothing more.
fn done(client: &Client) -> bool {
    client.acquisitions == 0 && !client.is_acquiring()
}

/// A holder does not acquire.
fn forget_asked(client: &mut Client) {
    if !client.is_acquiring() {
        client.replaces = None;
        for rank in &mut client.ranks {
            rank.asked = false;
            rank.written = Default::default();
        }
    }
}
