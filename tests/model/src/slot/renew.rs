//! Renew: a full lease again; in grace, the record put back. A holder in a moving slot is told here.

use super::{
    Ask, Event, Request, Rule, SlotModel, Token, World,
    network::Answer,
    state::{Mode, Slot},
};

impl SlotModel {
    /// The process asks, where its guard is, or at the shard that took a removed one's slot.
    pub(super) fn renew(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let client = &mut world.processes[usize::from(process)];
        let Some(guard) = client.guard.or(client.expired) else {
            return;
        };
        let Some(shard) = self.renewed_at(client, &guard) else {
            return;
        };
        if !prompt {
            client.budget.renewals -= 1;
        }
        let nonce = client.nonce;
        self.call(world, nonce, shard, Ask::Renew(guard.token));
    }

    /// The shard: extends its own record, puts it back in grace, or says `lost`.
    pub(super) fn renew_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        slot: Slot,
        token: Token,
    ) -> Answer {
        let moving = match slot.mode {
            Mode::Sealed(to) => Some((to, slot.guard.0)),
            _ => None,
        };
        let record = self.live_record(world, request.shard, &slot);
        if let Some(own) = record.filter(|record| record.nonce == request.nonce) {
            self.write(world, request, own.token);
            return Answer::Renewed { moving };
        }
        let only_missing = self.breaks(Rule::ReclaimOverOlder);
        let fits = record.is_none_or(|record| !only_missing && record.token < token);
        if !fits || slot.grace == 0 || self.breaks(Rule::ReclaimInGrace) {
            return Answer::Lost;
        }
        self.write(world, request, token);
        world.ledger.happened = Some(if world.topology.removed.is_some() {
            Event::ReclaimedElsewhere
        } else if world.topology.under_way.is_some() {
            Event::ReclaimedInMove
        } else {
            Event::Reclaimed
        });
        Answer::Renewed { moving }
    }

    /// The process: the deadline counts from the send of that renewal, and the guard moves if its
    /// slot does.
    pub(super) fn renewed(
        &self,
        world: &mut World,
        request: &Request,
        moving: Option<(u8, u8)>,
        left: u8,
    ) {
        let process = world.process(request.nonce);
        let Some(mut guard) = process.guard.or(process.expired.take()) else {
            return;
        };
        guard.left = guard.left.max(left);
        if guard.left == 0 {
            return;
        }
        guard.shard = request.shard;
        process.guard = Some(guard);
        process.fresh |= left > 0;
        if let Some((to, epoch)) = moving {
            let token = guard.token;
            self.call(world, request.nonce, to, Ask::Adopt { token, epoch });
        }
    }
}
