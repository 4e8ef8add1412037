//! The queue of the lead: another's record leaves a ticket, and passes to it.

use super::{
    Answer, Ask, Event, Message, Nonce, RedlockModel, Rule, World,
    lead::may_grant,
    state::{LEAD, Record, Ticket},
};

impl RedlockModel {
    /// Another has the record: it waits, if this is its lead, and there is room.
    pub(super) fn enter(&self, world: &mut World, message: &Message) {
        let leads = world.client(message.nonce.process).lead() == message.rank;
        let known = world.shard(message.shard).ticket;
        let has_room = known.is_none_or(|known| known.nonce == message.nonce);
        if !self.config.queues || !leads || !has_room {
            return;
        }
        world.shard_mut(message.shard).ticket = Some(Ticket {
            nonce: message.nonce,
            age: known.map_or(message.age, |known| known.age.min(message.age)),
            left: self.config.lease,
        });
    }

    /// A record that is free is the waiter's. Unless it is `asking`, it is told so by a late answer to its latest request.
    pub(super) fn pass(&self, world: &mut World, index: u8, asking: Option<Nonce>) {
        let shard = world.shard_mut(index);
        let is_free = shard.record.is_none() && may_grant(shard);
        let waiter = shard.ticket.filter(|_| is_free);
        let Some(ticket) = waiter.filter(|_| self.holds(Rule::WaiterGoesFirst)) else {
            return;
        };
        let token = match self.holds(Rule::TurnHasAFreshToken) {
            true => shard.token.next(),
            false => shard.token,
        };
        shard.raise(token);
        shard.ticket = None;
        shard.record = Some(Record {
            nonce: ticket.nonce,
            token,
            left: self.config.lease,
        });
        let client = world.client_mut(ticket.nonce.process);
        client.ranks[usize::from(index)].asked |= client.nonce == ticket.nonce;
        if asking != Some(ticket.nonce) {
            world.late.push(Message {
                nonce: ticket.nonce,
                rank: index,
                shard: index,
                ask: Ask::Acquire { replaces: None },
                answer: Some(Answer {
                    token: Some(token),
                    released: None,
                }),
                round: world.client(ticket.nonce.process).round,
                age: ticket.age,
            });
        }
        self.note(world, Event::PassedOn);
    }

    /// Whether the other client is before this one at the lead. If leads change, the order is not kept.
    pub(super) fn is_behind(&self, world: &World, index: u8) -> bool {
        let (other, lead) = (world.client(1 - index), world.shard(LEAD));
        let waits = other.is_acquiring() && lead.nonces().any(|nonce| nonce == other.nonce);
        waits && self.config.queues && !self.config.leads && may_grant(lead)
    }
}
