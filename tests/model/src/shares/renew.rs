//! Renew: a full lease again, perhaps for fewer shares; in grace, the shares put back.

use super::{
    Ask, Event, Request, Rule, SharesModel, Token, World,
    state::{Mode, Share, Slot},
};

impl SharesModel {
    /// The process asks where its guard is.
    pub(super) fn renew(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let client = &mut world.processes[usize::from(process)];
        let Some(guard) = client.guard else {
            return;
        };
        if !prompt {
            client.budget.renewals -= 1;
        }
        let (nonce, token, shares) = (client.nonce, guard.token, guard.shares);
        self.send(world, nonce, guard.shard, Ask::Renew { token, shares });
    }

    /// A writer becomes a reader: first for its process, then at the shard, by a renewal for one share.
    pub(super) fn downgrade(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        client.budget.downgrades -= 1;
        let nonce = client.nonce;
        let Some(guard) = &mut client.guard else {
            return;
        };
        if self.holds(Rule::DowngradeEndsBelief) {
            guard.shares = 1;
            guard.writes = false;
        }
        let (shard, token) = (guard.shard, guard.token);
        self.send(world, nonce, shard, Ask::Renew { token, shares: 1 });
    }

    /// The shard: extends its own entry, puts it back in grace, or says `lost`.
    pub(super) fn renew_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        slot: Slot,
        token: Token,
        shares: u8,
    ) {
        let Request { nonce, shard, .. } = *request;
        if let Some(own) = self.own_share(world, shard, &slot, nonce) {
            let fewer = shares < own.shares;
            let most = if self.holds(Rule::RenewNeverAdds) {
                own.shares
            } else {
                shares
            };
            let shares = shares.min(most);
            self.extend(world, shard, Share { shares, ..own });
            if fewer && self.holds(Rule::DowngradePasses) {
                self.pass(world, shard, None);
            }
            if fewer {
                self.note_idle_room(world, shard);
            }
            self.renewed(world, request, slot);
        } else if slot.grace > 0 && self.has_room_again(world, request, &slot, shares) {
            let left = self.config.lease;
            let life = world.shard(shard).life;
            world.shard(shard).memory.forget_ticket(nonce);
            self.write(
                world,
                shard,
                Share {
                    nonce,
                    shares,
                    token,
                    left,
                    life,
                },
            );
            self.renewed(world, request, slot);
        } else {
            self.pass(world, shard, None);
            self.lost(world, request);
        }
    }

    /// Whether shares may be put back: without asking for room.
    fn has_room_again(
        &self,
        world: &mut World,
        request: &Request,
        slot: &Slot,
        shares: u8,
    ) -> bool {
        let taken = self.live_sum(world, request.shard, slot);
        let capacity = self.config.capacities.iter().copied().max().unwrap_or(0);
        let fits = taken + shares <= capacity;
        world.ledger.happened = Some(if fits {
            Event::Reclaimed
        } else {
            Event::ReclaimedWithoutRoom
        });
        fits || self.holds(Rule::ReclaimNeedsNoRoom)
    }

    /// The process: the deadline counts from the send of that renewal, and the guard moves if its
    /// slot does.
    fn renewed(&self, world: &mut World, request: &Request, slot: Slot) {
        let left = self.config.lease.saturating_sub(request.age);
        let process = world.process(request.nonce);
        if process.nonce != request.nonce
            || process.guard.is_none_or(|it| it.shard != request.shard)
        {
            return;
        }
        let Some(guard) = &mut process.guard else {
            return;
        };
        guard.left = guard.left.max(left);
        let (token, shares) = (guard.token, guard.shares);
        process.fresh |= left > 0;
        if slot.mode == Mode::Sealed {
            self.send(world, request.nonce, 1, Ask::Adopt { token, shares });
        }
    }

    /// The process: its guard ends, if it is still at that shard.
    fn lost(&self, world: &mut World, request: &Request) {
        let process = world.process(request.nonce);
        let here = process
            .guard
            .is_some_and(|guard| guard.shard == request.shard);
        if process.nonce == request.nonce && here {
            self.lose(world, request.nonce.process);
        }
    }
}
