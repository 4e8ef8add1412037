use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    ledger::Ledger,
    properties::{all, reached},
    record::Record,
    state::{Left, Mode, Shard},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type TopologyModel = Ruled<Configuration, Rule>;

impl Model for TopologyModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let config = &self.config;
        let founded = Record::founded(config.owner);
        let shard = |index| {
            let owns = index == config.owner;
            let mut shard = Shard::new(if owns { Mode::Open } else { Mode::Shut }, founded);
            shard.record = Some(founded).filter(|record| record.home == index);
            shard
        };
        vec![World {
            shards: (0..config.shards).map(shard).collect(),
            read: vec![founded],
            movers: Vec::new(),
            recoveries: [None, None],
            guards: Vec::new(),
            left: Left {
                grants: config.grants,
                moves: config.moves,
                home_restarts: config.home_restarts,
                restarts: config.restarts,
                losses: config.losses,
                deaths: config.deaths,
                retargets: config.retargets,
                flushes: config.flushes,
                rearms: config.rearms,
                recoveries: config.recoveries,
            },
            ledger: Ledger::new(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.enabled(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.after(world, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let events = self.config.reaches.iter().copied();
        self.chosen(all(), events.map(reached))
    }
}
