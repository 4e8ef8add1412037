//! Locks: what the rest is for. Every request is answered at once.

use super::{
    Action, Event, Rule, TopologyModel, World,
    record::{Incarnation, Member, Record},
    state::{Guard, Lock, Mode, Shard, Slot},
};

impl TopologyModel {
    pub(super) fn enabled_locks(&self, world: &World, actions: &mut Vec<Action>) {
        if world.left.grants > 0 && world.guards.len() < 2 {
            actions.extend((0..self.config.shards).map(Action::Grant));
        }
        for guard in 0..world.guards.len() {
            actions.extend([Action::Renew(guard), Action::Adopt(guard)]);
        }
    }

    /// A process acquires; if necessary with a proof, fetched in the same moment.
    pub(super) fn grant(&self, world: &mut World, index: u8) {
        let shard = world.shard(index);
        let Some(mut slot) = shard.slot.filter(|slot| shard.up && slot.grace == 0) else {
            return;
        };
        let free = match slot.mode {
            Mode::Open => true,
            Mode::Import(from) => {
                let proven = proves(world.shard(from), &slot) && self.is_relied_on(world, from);
                slot.guard.1 > 0 && proven
            }
            Mode::Shut | Mode::Sealed(_) => false,
        };
        if !free || shard.lock.is_some() || !self.is_relied_on(world, index) {
            return;
        }
        slot.token = slot.token.next();
        let (token, left) = (slot.token, self.config.lease);
        let restored = shard.fence > Incarnation::default();
        let shard = world.shard_mut(index);
        shard.slot = Some(slot);
        shard.lock = Some(Lock { token, left });
        world.guards.push(Guard {
            shard: index,
            token,
            left,
        });
        world.left.grants -= 1;
        world.ledger.granted(token);
        if restored {
            world.ledger.happened = Some(Event::GrantAfter);
        }
    }

    /// A holder renews; in grace its record is put back.
    pub(super) fn renew(&self, world: &mut World, index: usize) {
        let Guard { shard, token, .. } = world.guards[index];
        if !self.is_relied_on(world, shard) {
            return;
        }
        let left = self.config.lease;
        let shard = world.shard_mut(shard);
        let armed = shard
            .slot
            .filter(|slot| shard.up && slot.mode != Mode::Shut);
        let Some(slot) = armed else {
            return;
        };
        let own = shard.lock.is_some_and(|lock| lock.token == token);
        let older = shard.lock.is_none_or(|lock| lock.token < token);
        let reclaimed = slot.grace > 0 && older;
        if own || reclaimed {
            shard.lock = Some(Lock { token, left });
            let restored = shard.fence > Incarnation::default();
            world.guards[index].left = left;
            if reclaimed && restored {
                world.ledger.happened = Some(Event::KeptThrough);
            }
        } else {
            world.guards.remove(index);
        }
    }

    /// Whether requests of some process go there: it knows a record that it read after it connected, or a newer one.
    fn is_relied_on(&self, world: &World, index: u8) -> bool {
        let shard = world.shard(index);
        let is_named = shard.slot.is_none() || shard.named_until >= shard.led_here;
        is_named || !self.lives_may_go_on() || self.breaks(Rule::RequestsGoToTheNamedLife)
    }

    /// Whether a shard is in the life, and armed with the epoch, that the topology names, by the newest record.
    pub(super) fn is_as_named(&self, world: &World, index: u8) -> bool {
        if !self.lives_may_go_on() {
            return true;
        }
        let newest = world.read.iter().copied().max_by_key(Record::version);
        let newest = self.in_force(world).next().or(newest);
        newest.is_none_or(|record| names(&record, world, index))
    }

    /// Only asked where a life may go on that is to be armed anew: elsewhere a shard that is not as named has no state.
    pub(super) fn lives_may_go_on(&self) -> bool {
        let asked = self.config.retargets + self.config.rearms > 0;
        asked && !self.breaks(Rule::ReplacedIsArmedAnew)
    }

    /// A holder goes along with its slot.
    pub(super) fn adopt(&self, world: &mut World, index: usize) {
        let Guard { shard, token, .. } = world.guards[index];
        let left = self.config.lease;
        let former = world.shard(shard);
        let own = former.up && former.lock.is_some_and(|lock| lock.token == token);
        let Some(Slot {
            mode: Mode::Sealed(to),
            guard: (epoch, _),
            ..
        }) = former
            .slot
            .filter(|_| own && self.is_relied_on(world, shard))
        else {
            return;
        };
        if !self.is_relied_on(world, to) {
            return;
        }
        let next = world.shard_mut(to);
        let imports = |slot: Slot| slot.mode == Mode::Import(shard) && slot.guard.0 == epoch;
        let lower = next.lock.is_none_or(|lock| lock.token < token);
        if next.up && next.slot.is_some_and(imports) && lower {
            next.lock = Some(Lock { token, left });
            world.shard_mut(shard).lock = None;
            let guard = &mut world.guards[index];
            (guard.shard, guard.left) = (to, left);
        }
    }
}

/// Whether `record` names a shard as it is. One without state does nothing.
pub(super) fn names(record: &Record, world: &World, index: u8) -> bool {
    let shard = world.shard(index);
    let Member { life, epoch } = record.member(index);
    let is_armed = |slot: Slot| life == shard.life && slot.armed >= epoch.number;
    shard.slot.is_none_or(is_armed)
}

/// Whether the former shard proves to `import` that the key is free there.
fn proves(former: &Shard, import: &Slot) -> bool {
    let sealed = |slot: Slot| {
        matches!(slot.mode, Mode::Sealed(_)) && slot.guard.0 == import.guard.0 && slot.grace == 0
    };
    former.up && former.slot.is_some_and(sealed) && former.lock.is_none()
}
