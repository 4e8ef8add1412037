//! Adopt: a holder moves itself. Its record goes to B, and then away from A.

use super::{
    Ask, Event, Request, Rule, SlotModel, Token, World,
    network::Answer,
    state::{Mode, Slot},
};

impl SlotModel {
    /// B: takes the record over, if it imports the slot by this very move.
    pub(super) fn adopt_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        slot: Slot,
        token: Token,
        epoch: u8,
    ) -> Answer {
        let this_move = slot.guard.0 == epoch;
        let record = self.live_record(world, request.shard, &slot);
        if let Some(own) = record.filter(|record| record.nonce == request.nonce) {
            let here = this_move && matches!(slot.mode, Mode::Import | Mode::Open);
            if here || self.breaks(Rule::AdoptFindsInItsMove) {
                self.write(world, request, own.token);
                return Answer::Adopted;
            }
        }
        let importing = this_move && slot.mode == Mode::Import;
        let any = self.breaks(Rule::AdoptNeverOverwrites);
        if importing && record.is_none_or(|record| any || record.token < token) {
            self.write(world, request, token);
            return Answer::Adopted;
        }
        Answer::Refused
    }

    /// The process: if its deadline at A has not passed, the guard is at B now, and A is told.
    pub(super) fn adopted(&self, world: &mut World, request: &Request, epoch: u8, left: u8) {
        let whole = self.breaks(Rule::AdoptedFromItsSend);
        let left = if whole { self.config.lease } else { left };
        let Some(guard) = (world.process(request.nonce).guard.as_mut()).filter(|_| left > 0) else {
            return;
        };
        let from = guard.shard;
        guard.shard = request.shard;
        guard.left = left;
        world.ledger.happened = Some(Event::Adopted);
        self.send(world, request.nonce, from, Ask::Remove { epoch });
    }

    /// A: takes the record away, if the slot is still sealed by that move.
    pub(super) fn remove_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        slot: Slot,
        epoch: u8,
    ) {
        let sealed = matches!(slot.mode, Mode::Sealed(_)) && slot.guard.0 == epoch;
        if sealed || self.breaks(Rule::RemoveInItsMove) {
            let shard = world.shard(request.shard);
            shard.record = (shard.record).filter(|record| record.nonce != request.nonce);
        }
    }
}
