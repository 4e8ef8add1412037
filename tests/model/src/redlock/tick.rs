//! Time.

use super::{
    Ask, Message, RedlockModel, Rule, World,
    state::{Client, LEAD, MAJORITY, Phase, Rank, Shard},
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
        let lasts = |message: &Message| {
            let turn = message.answer.is_some() && matches!(message.ask, Ask::Acquire { .. });
            turn && self.breaks(Rule::TurnFromItsRequest)
        };
        for message in world.late.iter_mut().filter(|message| !lasts(message)) {
            message.age = self.config.lease.min(message.age + 1);
        }
    }

    fn tick_shard(&self, index: u8, shard: &mut Shard) {
        shard.grace = shard.grace.saturating_sub(1);
        if let Some(ticket) = &mut shard.ticket {
            ticket.age = self.config.lease.min(ticket.age + 1);
            ticket.left -= 1;
        }
        shard.ticket = shard.ticket.filter(|ticket| ticket.left > 0);
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
        self.lapse(client);
    }

    /// Ranks without time left are over, and so is a lock without a majority.
    pub(super) fn lapse(&self, client: &mut Client) {
        let is_gone = |rank: &Rank| rank.left == 0 && rank.token.is_some();
        if self.config.forces && client.ranks.iter().any(is_gone) {
            for rank in &mut client.ranks {
                rank.gone |= is_gone(rank);
                rank.renewed = false;
            }
        }
        for rank in client.ranks.iter_mut().filter(|rank| rank.left == 0) {
            rank.token = None;
            rank.moved = false;
        }
        if client.holds() && client.live().count() < MAJORITY {
            client.ranks = Default::default();
            client.phase = Phase::Lost;
        }
    }
}
