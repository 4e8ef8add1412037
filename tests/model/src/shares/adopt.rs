//! Adopt: a holder moves itself. Its shares go to B, and then away from A.

use super::{
    Ask, Event, Request, Rule, SharesModel, Token, World,
    configurations::ALL,
    state::{Mode, Share, Slot},
};

impl SharesModel {
    /// B: takes the shares over without asking for room.
    pub(super) fn adopt_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        mut slot: Slot,
        token: Token,
        shares: u8,
    ) {
        let Request { nonce, shard, .. } = *request;
        let of_move = (world.migration).is_some_and(|migration| migration.epoch == slot.guard.0);
        if !of_move {
            return;
        }
        let own = self.own_share(world, shard, &slot, nonce);
        let adopted = match (own, slot.mode) {
            (Some(own), Mode::Import | Mode::Open) => Share {
                shares: own.shares.min(shares),
                ..own
            },
            (None, Mode::Import) if self.has_room_here(world, shard, &slot, shares) => Share {
                nonce,
                shares,
                token,
                left: 0,
                life: 0,
            },
            _ => return,
        };
        if self.breaks(Rule::LeftFallsByProofOnly) && own.is_none() {
            slot.left = slot.left.map(|left| left.saturating_sub(shares));
            world.shard(shard).slot = Some(slot);
        }
        world.shard(shard).memory.forget_ticket(nonce);
        self.extend(world, shard, adopted);
        self.adopted(world, request, shares);
    }

    /// Whether shares may move here: without asking for room.
    fn has_room_here(&self, world: &World, shard: u8, slot: &Slot, shares: u8) -> bool {
        let taken = slot.left.unwrap_or(0) + self.live_sum(world, shard, slot);
        self.holds(Rule::AdoptNeedsNoRoom) || taken + shares <= ALL
    }

    /// The process: if its deadline at A has not passed, its guard is at B now, and A is told.
    ///
    /// A downgrade that was sent to A meanwhile is repeated at B.
    fn adopted(&self, world: &mut World, request: &Request, shares: u8) {
        let left = self.config.lease.saturating_sub(request.age);
        let process = world.process(request.nonce);
        if process.nonce != request.nonce || left == 0 {
            return;
        }
        let Some(guard) = process.guard.as_mut().filter(|guard| guard.shard == 0) else {
            return;
        };
        guard.shard = request.shard;
        guard.left = left;
        let (token, held) = (guard.token, guard.shares);
        world.ledger.happened = Some(Event::Adopted);
        if held < shares {
            let shares = held;
            self.send(world, request.nonce, 1, Ask::Renew { token, shares });
        }
        self.send(world, request.nonce, 0, Ask::Remove);
    }

    /// A: takes the shares away, if the slot is still sealed.
    pub(super) fn remove_at_shard(&self, world: &mut World, request: &Request, slot: Slot) {
        if slot.mode == Mode::Sealed {
            let memory = &mut world.shard(request.shard).memory;
            memory.shares.retain(|share| share.nonce != request.nonce);
        }
    }
}
