//! Room: the shares that count, and whether a request fits beside them.

use super::{
    Rule, SharesModel, Terms, World,
    configurations::{ALL, Participant, Want},
    mover::ARMED,
    state::{Mode, Share, Slot},
};

impl SharesModel {
    /// The terms of a process that carries this capacity.
    pub(super) fn terms(&self, process: u8, capacity: u8) -> Terms {
        let constant = self.holds(Rule::WriterTakesAConstant);
        let all = if constant { ALL } else { capacity };
        let Participant {
            want, preferred, ..
        } = self.config.participants[usize::from(process)];
        let (shares, capacity) = match want {
            Want::Reader => (1, all),
            Want::Writer => (all, all),
            Want::Permits(shares) => (shares, capacity),
        };
        Terms {
            shares,
            capacity,
            preferred,
        }
    }

    pub(super) fn is_writer(&self, process: u8) -> bool {
        self.config.participants[usize::from(process)].want == Want::Writer
    }

    /// The entries that count: not ended, and of this life unless grace still runs.
    pub(super) fn live_shares<'world>(
        &self,
        world: &'world World,
        shard: u8,
        slot: &Slot,
    ) -> impl Iterator<Item = Share> + use<'world> {
        let shard = &world.shards[usize::from(shard)];
        let (life, in_grace) = (shard.life, slot.grace > 0);
        (shard.memory.shares.iter().copied()).filter(move |share| share.life == life || in_grace)
    }

    /// The shares that are taken at that shard.
    pub(super) fn live_sum(&self, world: &World, shard: u8, slot: &Slot) -> u8 {
        self.live_shares(world, shard, slot)
            .map(|share| share.shares)
            .sum()
    }

    /// Whether the shard would grant these terms now, if no ticket were ahead.
    pub(super) fn fits(&self, world: &World, shard: u8, slot: &Slot, terms: Terms) -> bool {
        let left = match slot.mode {
            Mode::Open => Some(0),
            // A mover has not said yet which tokens A made.
            Mode::Import if slot.guard.1 == ARMED => None,
            Mode::Import if self.breaks(Rule::RoomCountsLeft) => slot.left.map(|_| 0),
            Mode::Import => slot.left,
            Mode::Sealed if self.breaks(Rule::SealedNeverPasses) => Some(0),
            Mode::Sealed | Mode::Shut => None,
        };
        let taken = left.map(|left| left + self.live_sum(world, shard, slot));
        taken.is_some_and(|taken| taken + terms.shares <= terms.capacity)
    }
}
