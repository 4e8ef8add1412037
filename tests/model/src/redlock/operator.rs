//! An operator takes the lock from its holder, and finds ranks gone that the holder had.

use super::{
    Event, RedlockModel, Rule, World,
    actions::Action,
    state::{Client, MAJORITY, RANKS},
};

impl RedlockModel {
    pub(super) fn enabled_force(&self, world: &World, actions: &mut Vec<Action>) {
        if world.left.forces == 0 {
            return;
        }
        let out_of_reach = (0..RANKS).map(Some).chain([None]);
        actions.extend(out_of_reach.map(Action::Force));
    }

    /// The operator reaches all ranks but one. None if it finds no holder there.
    pub(super) fn force(&self, world: &mut World, out_of_reach: Option<u8>) -> Option<()> {
        let reached = || (0..RANKS).filter(|rank| Some(*rank) != out_of_reach);
        let records = |index: u8| {
            let recorded = |rank: &u8| {
                let record = world.shard(*rank).record;
                record.is_some_and(|record| record.nonce == world.client(index).nonce)
            };
            reached().filter(recorded).count()
        };
        let needed = match self.holds(Rule::TakenFromAMajority) {
            true => MAJORITY,
            false => 1,
        };
        let holder = [0, 1].into_iter().find(|index| records(*index) >= needed)?;
        let nonce = world.client(holder).nonce;
        for rank in reached() {
            let shard = world.shard_mut(rank);
            let all = self.breaks(Rule::TakeTheHoldersAlone);
            shard.record = shard.record.filter(|record| !all && record.nonce != nonce);
        }
        world.left.forces -= 1;
        world.client_mut(holder).taken = true;
        self.note(world, Event::Taken);
        Some(())
    }

    /// A renewal found no record at `rank`.
    pub(super) fn found_gone(&self, world: &mut World, index: u8, rank: u8) -> Option<()> {
        let client = world.client_mut(index);
        if !self.config.forces || client.rank(rank).left == 0 {
            return None;
        }
        client.ranks[usize::from(rank)].left = 0;
        self.lapse(client);
        Some(())
    }

    /// Whether a holder may write its record at `rank`, where it has none.
    pub(super) fn may_install(&self, client: &Client, rank: u8) -> bool {
        let renewed = client.live().filter(|rank| rank.renewed).count();
        let may =
            !client.rank(rank).gone || renewed >= MAJORITY || self.breaks(Rule::InstallOnceRenewed);
        self.config.installs && client.rank(rank).left == 0 && may
    }
}
