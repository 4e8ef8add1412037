//! Arming: a new life is recorded with a fresh epoch, and told what the topology has for it.

use super::{
    Rule, SlotModel, Token, World,
    mover::{ARMED, BEGUN, DONE},
    state::{Mode, Slot},
    topology::Migration,
};

impl SlotModel {
    /// The swap that names the new life. A move under way has another version from here on: what
    /// was answered in the old life does not finish it.
    pub(super) fn record_life(&self, world: &mut World, shard: u8) {
        let life = world.shard(shard).life;
        let epoch = world.topology.fresh_epoch();
        let member = &mut world.topology.members[usize::from(shard)];
        member.life = life;
        member.epoch = epoch;
        if let Some(migration) = world.topology.under_way
            && self.holds(Rule::FinishExpectsItsVersion)
        {
            let Migration {
                from, to, known, ..
            } = &mut world.topology.migrations[migration];
            known.opened &= *to != shard;
            known.shut &= *from != shard;
        }
        let slot = self.armament(world, shard);
        world.shard(shard).read = Some(slot);
    }

    /// Once per life: an armed shard stays as it is.
    pub(super) fn arm(&self, world: &mut World, shard: u8, late: bool) {
        let armament = if late {
            world.shard(shard).read
        } else {
            Some(self.armament(world, shard))
        };
        let shard = world.shard(shard);
        shard.slot = armament;
        // What was of other lives is unlinked.
        shard.former = None;
    }

    /// What the topology has for the slot at that shard, and full grace.
    fn armament(&self, world: &World, shard: u8) -> Slot {
        let topology = &world.topology;
        let own = topology.members[usize::from(shard)].epoch;
        let owns = topology.owner == shard;
        let slot = match (topology.removed, topology.migration()) {
            (Some(removed), _) if owns => {
                let opens = removed.epoch.is_some() || self.breaks(Rule::ArmedHeirWaits);
                let mode = if opens { Mode::Open } else { Mode::Shut };
                let epoch = own.max(removed.epoch.unwrap_or_default());
                Slot::new(mode, (epoch, DONE), epoch)
            }
            (_, Some(migration)) if migration.from == shard => {
                self.armed_in_move(Mode::Sealed(migration.to), (migration.epoch, BEGUN), own)
            }
            (_, Some(migration)) if migration.to == shard => {
                self.armed_in_move(Mode::Import, (migration.epoch, ARMED), own)
            }
            _ if owns => {
                let epoch = own.max(topology.owner_epoch);
                Slot::new(Mode::Open, (epoch, DONE), epoch)
            }
            _ => Slot::new(Mode::Shut, (own, DONE), own),
        };
        let fresh = self.holds(Rule::FreshEpochAtArm);
        let graces = self.holds(Rule::GraceAfterRestart);
        Slot {
            grace: if graces { self.config.lease } else { 0 },
            token: if fresh { slot.token } else { Token::none_of(1) },
            ..slot
        }
    }

    fn armed_in_move(&self, mode: Mode, guard: (u8, u8), own: u8) -> Slot {
        let (epoch, _) = guard;
        let fresh = self.holds(Rule::FreshEpochInAMove);
        Slot::new(mode, guard, if fresh { own.max(epoch) } else { epoch })
    }
}
