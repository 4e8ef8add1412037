//! Whether a state is one from which the topology can still come to rest.

use super::{
    Action, Step, TopologyModel, World,
    record::Record,
    state::{Left, Mode},
};

/// More than it takes.
const TURNS: usize = 100;

impl TopologyModel {
    /// Whether one diligent engine, alone and without any more faults, brings the slot to rest. Only
    /// asked while no member is dead.
    ///
    /// What it does first is fixed, so that the answer is found without a search: it may be too strict,
    /// and never too kind.
    pub(super) fn comes_to_rest(&self, world: &World) -> bool {
        if world.shards.iter().any(|shard| !shard.up) {
            return true;
        }
        let mut world = self.alone(world);
        for _ in 0..TURNS {
            if self.is_at_rest(&world) {
                return true;
            }
            let next = (self.diligence(&world).into_iter())
                .filter_map(|action| self.after(&world, action))
                .next();
            let Some(next) = next else {
                return false;
            };
            world = next;
        }
        false
    }

    /// The others have gone, and all holders.
    fn alone(&self, world: &World) -> World {
        World {
            recoveries: [None, None],
            guards: Vec::new(),
            left: Left {
                recoveries: u8::MAX,
                ..Left::default()
            },
            ..world.clone()
        }
    }

    fn is_at_rest(&self, world: &World) -> bool {
        let Some(record) = self.in_force(world).next() else {
            return false;
        };
        let owner = world.shard(record.owner).slot;
        let grants = owner.is_some_and(|slot| {
            let rises = slot.token.next() > world.ledger.newest;
            slot.mode == Mode::Open && slot.grace == 0 && rises
        });
        let armed = (world.each())
            .all(|(index, shard)| shard.slot.is_some() && self.is_as_named(world, index));
        record.migration.is_none() && world.recoveries[0].is_none() && armed && grants
    }

    /// What it tries, in this order.
    fn diligence(&self, world: &World) -> Vec<Action> {
        let engine = 0;
        let mut actions = Vec::new();
        if world.recoveries[0].is_some() {
            actions.push(Action::Restore(engine));
            self.enabled_recoveries(world, &mut actions);
        } else {
            self.enabled_recoveries(world, &mut actions);
            for record in self.in_force(world) {
                let home = record.home;
                let its = world.read.iter().position(|read| *read == record);
                for shard in 0..self.config.shards {
                    actions.push(Action::RecordLife { home, shard });
                    if let Some(record) = its {
                        self.enabled_by(world, record, shard, &mut actions);
                    }
                }
                actions.push(Action::Finish { home });
                self.steps_of(world, &record, &mut actions);
            }
        }
        actions.push(Action::Tick);
        actions
    }

    fn steps_of(&self, world: &World, record: &Record, actions: &mut Vec<Action>) {
        let its = world.movers.iter().enumerate().filter(|(_, mover)| {
            Some(mover.migration) == record.migration
                && mover.record.incarnation == record.incarnation
        });
        for (mover, known) in its {
            let steps = Step::EVERY.into_iter().filter(|step| known.may(*step));
            actions.extend(steps.map(|step| Action::Step { mover, step }));
        }
    }
}
