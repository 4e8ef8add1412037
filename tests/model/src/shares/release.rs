//! Release: giving shares back, and giving up.

use super::{Ask, Request, Rule, SharesModel, World};

impl SharesModel {
    /// One of several holders leaves. With the last one, belief and waiting end; then the release goes to every shard
    /// that was asked.
    pub(super) fn release(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        let others = client.guard.as_mut().filter(|guard| guard.holders > 1);
        if let Some(guard) = others {
            guard.holders -= 1;
            if self.holds(Rule::LastHolderReleases) {
                return;
            }
        } else {
            client.guard = None;
            client.waits = None;
        }
        let (nonce, asked) = (client.nonce, client.asked);
        for shard in (0..2).filter(|shard| asked >> shard & 1 == 1) {
            self.send(world, nonce, shard, Ask::Release);
        }
    }

    /// A guard ends by itself.
    pub(super) fn lose(&self, world: &mut World, process: u8) {
        world.ledger.healthy_guard_lost |= self.is_prompt(process);
        world.processes[usize::from(process)].guard = None;
    }

    /// The shard: neither shares nor a ticket of that nonce stay, and the next are granted.
    pub(super) fn release_at_shard(&self, world: &mut World, request: &Request) {
        let Request { nonce, shard, .. } = *request;
        let memory = &mut world.shard(shard).memory;
        memory.forget_ticket(nonce);
        let whole = self.breaks(Rule::ReleaseTakesItsShares) && memory.share(nonce).is_some();
        memory.shares.retain(|share| share.nonce != nonce && !whole);
        self.pass(world, shard, None);
        self.note_idle_room(world, shard);
    }
}
