//! Puts the newest record that is left back in force.

use super::{
    Action, Event, Rule, TopologyModel, World,
    record::{Incarnation, MEMBERS_MAX, Meaning, Record, newest},
    state::{Recovery, Shard},
};

/// What an engine knows of the record by itself. What its members know is newer, if there is any.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum View {
    /// Nothing: it has only begun.
    None,
    /// The first record: it has not looked since.
    First,
    /// The newest record that ever was in force.
    Newest,
}

/// Both that may be at it.
const ENGINES: [u8; 2] = [0, 1];

impl TopologyModel {
    pub(super) fn enabled_recoveries(&self, world: &World, actions: &mut Vec<Action>) {
        let begins = world.left.recoveries > 0 && self.is_recover_needed(world);
        for engine in ENGINES {
            match &world.recoveries[usize::from(engine)] {
                Some(recovery) => {
                    let to_fence = (world.up()).filter(|(shard, _)| recovery.may_fence(*shard));
                    actions.extend(to_fence.map(|(shard, _)| Action::Fence { engine, shard }));
                    if recovery.has_fenced(recovery.home) {
                        actions.push(Action::Restore(engine));
                    }
                    if world.left.recoveries > 0 {
                        actions.push(Action::GiveUp(engine));
                    }
                }
                None if begins && (engine == 0 || world.recoveries[0].is_some()) => {
                    self.enabled_surveys(world, engine, actions);
                }
                None => {}
            }
        }
    }

    /// No record is in force, or a member was fenced above it.
    fn is_recover_needed(&self, world: &World) -> bool {
        let fence = world.up().map(|(_, shard)| shard.fence).max();
        (self.in_force(world)).all(|record| Some(record.incarnation) < fence)
    }

    fn enabled_surveys(&self, world: &World, engine: u8, actions: &mut Vec<Action>) {
        let surveyed = self.surveyed(world);
        let views = [View::None, View::First, View::Newest].into_iter();
        let newer = |view: &View| match self.record_of(world, *view) {
            None => surveyed.is_some(),
            record => record > surveyed,
        };
        actions.extend(
            views
                .filter(newer)
                .map(|view| Action::Survey { engine, view }),
        );
    }

    fn record_of(&self, world: &World, view: View) -> Option<Record> {
        match view {
            View::None => None,
            View::First => Some(Record::founded(self.config.owner)),
            View::Newest => world.read.iter().copied().max_by_key(Record::version),
        }
    }

    fn surveyed(&self, world: &World) -> Option<Record> {
        let shards = world.up().map(|(_, shard)| shard.newest());
        shards.fold(None, newest)
    }

    /// Every member is asked; a home is chosen, and then the incarnation.
    pub(super) fn survey(&self, world: &mut World, engine: u8, view: View) {
        let view = self.record_of(world, view);
        let Some(left) = newest(self.surveyed(world), view) else {
            return;
        };
        let Some((first, _)) = world.up().next() else {
            return;
        };
        let home = if world.shard(left.home).up {
            left.home
        } else {
            first
        };
        let mut lives = [0; MEMBERS_MAX];
        for (shard, state) in world.each() {
            lives[usize::from(shard)] = state.life;
        }
        let mut recovery = Recovery {
            home,
            lives,
            incarnation: self.next_incarnation(world, engine),
            fenced: 0,
            base: view.filter(|_| self.holds(Rule::NewestIsRestored)),
            epoch: 0,
            armed: [0; MEMBERS_MAX],
        };
        if self.breaks(Rule::AnsweredWithTheFence) {
            for (shard, state) in world.up() {
                self.hear(&mut recovery, shard, state);
            }
        }
        world.recoveries[usize::from(engine)] = Some(recovery);
        world.left.recoveries -= 1;
    }

    /// Above every one seen; by a clock, above every one that ever was in force.
    fn next_incarnation(&self, world: &World, engine: u8) -> Incarnation {
        let seen = world.up().flat_map(|(_, shard)| {
            let record = shard.newest().map(|record| record.incarnation);
            [Some(shard.fence), record]
        });
        let seen = seen.flatten().max().unwrap_or_default().number;
        let own = self.holds(Rule::IncarnationIsItsOwn);
        Incarnation {
            number: seen.max(world.ledger.last_incarnation) + 1,
            engine: if own { engine } else { 0 },
        }
    }

    /// A member lets nothing of an earlier incarnation take effect any more, and answers what did.
    pub(super) fn fence(&self, world: &mut World, engine: u8, index: u8) {
        let Some(mut recovery) = world.recoveries[usize::from(engine)].take() else {
            return;
        };
        let n = recovery.incarnation;
        let shard = world.shard_mut(index);
        // The home's is enough; the code asks it of every member.
        let noted = recovery.lives[usize::from(index)];
        let other_life = index == recovery.home && shard.life != noted;
        let shared = shard.fence == n && self.breaks(Rule::IncarnationIsItsOwn);
        let outrun = shard.fence >= n && !shared;
        if outrun || other_life {
            world.ledger.happened = Some(Event::Outrun);
            return;
        }
        let passed = self.breaks(Rule::UnarmedAreFenced) && shard.slot.is_none();
        if self.holds(Rule::RecoverFences) && !passed {
            shard.fence = n;
        }
        recovery.lives[usize::from(index)] = shard.life;
        recovery.fenced |= 1 << index;
        if self.holds(Rule::AnsweredWithTheFence) {
            let shard = world.shard(index);
            self.hear(&mut recovery, index, shard);
        }
        world.recoveries[usize::from(engine)] = Some(recovery);
    }

    fn hear(&self, recovery: &mut Recovery, index: u8, shard: &Shard) {
        if self.holds(Rule::NewestIsRestored) || recovery.base.is_none() {
            recovery.base = newest(recovery.base, shard.newest());
        }
        if let Some(slot) = shard.slot {
            recovery.armed[usize::from(index)] = slot.armed;
            recovery.epoch = recovery.epoch.max(slot.token.epoch);
        }
    }

    /// All have answered: the record is put in force at the home, if nothing came between.
    pub(super) fn restore(&self, world: &mut World, engine: u8) {
        let Some(recovery) = world.recoveries[usize::from(engine)] else {
            return;
        };
        let silent = (world.up()).filter(|(shard, _)| !recovery.has_fenced(*shard));
        let skipped = usize::from(self.breaks(Rule::NobodyIsSkipped));
        let Some(base) = recovery.base.filter(|_| silent.count() <= skipped) else {
            return;
        };
        world.recoveries[usize::from(engine)] = None;
        let home = recovery.home;
        let elsewhere = base.home != home && world.shard(base.home).up;
        if elsewhere || !self.may_restore(world.shard(home), &recovery) {
            world.ledger.happened = Some(Event::Outrun);
            return;
        }
        let record = self.recovered(world, &recovery, base);
        self.put_in_force(world, record);
        world.ledger.happened = Some(match base.migration {
            _ if base.home != home => Event::RestoredElsewhere,
            Some(_) => Event::RestoredInMove,
            None => Event::Restored,
        });
    }

    /// Whether the home is as this recovery left it.
    fn may_restore(&self, home: &Shard, recovery: &Recovery) -> bool {
        let n = recovery.incarnation;
        let blind = self.breaks(Rule::RestoredIfStillFenced) || self.breaks(Rule::RecoverFences);
        let passed = self.breaks(Rule::UnarmedAreFenced) && home.fence < n;
        let fenced = home.fence == n || passed || blind;
        let shared = self.breaks(Rule::IncarnationIsItsOwn);
        let newer = (home.record).is_some_and(|record| record.incarnation >= n) && !shared;
        home.up && home.life == recovery.lives[usize::from(recovery.home)] && fenced && !newer
    }

    /// What follows `base`, in a later incarnation. Nothing of it can be taken for anything of before.
    fn recovered(&self, world: &World, recovery: &Recovery, base: Record) -> Record {
        let n = recovery.incarnation;
        let number = self.fresh_epoch(world, recovery.epoch.max(base.last_epoch));
        let mut record = base;
        let epoch = record.allot(number, Meaning::Recovery(n));
        record.incarnation = n;
        record.number += 1;
        record.home = recovery.home;
        record.home_life = world.shard(recovery.home).life;
        for shard in (0..self.config.shards).filter(|shard| recovery.has_fenced(*shard)) {
            let member = &mut record.members[usize::from(shard)];
            let life = recovery.lives[usize::from(shard)];
            let armed = recovery.armed[usize::from(shard)];
            let relied = if self.holds(Rule::RecoveredIfArmedAsNamed) {
                life == member.life && armed == member.epoch.number
            } else {
                armed > 0
            };
            member.life = life;
            if !relied {
                member.epoch = epoch;
            }
        }
        if let Some(migration) = &mut record.migration
            && self.holds(Rule::MovesArePlannedAgain)
        {
            migration.epoch = epoch;
        }
        record
    }
}

impl Recovery {
    pub(super) fn has_fenced(&self, shard: u8) -> bool {
        self.fenced >> shard & 1 == 1
    }

    /// The home first.
    fn may_fence(&self, shard: u8) -> bool {
        !self.has_fenced(shard) && (shard == self.home || self.has_fenced(self.home))
    }
}
