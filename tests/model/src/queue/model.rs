use stateright::{Model, Property};

use super::{
    Action, Configuration, Nonce, Rule, World,
    ledger::Ledger,
    network::Network,
    properties::{reached, safety},
    state::{Memory, Phase, Process, Record, Shard, Slot},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type QueueModel = Ruled<Configuration, Rule>;

impl QueueModel {
    /// The live record, if its process no longer knows of it.
    pub(super) fn orphan(&self, world: &World) -> Option<Record> {
        (self.live_record(world)).filter(|record| !world.is_alive(record.nonce))
    }
}

impl Model for QueueModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let process = |(index, budget)| Process {
            nonce: Nonce {
                process: index,
                sequence: 0,
            },
            phase: Phase::Idle,
            budget,
            leftover: None,
        };
        let budgets = self.config.processes.iter().copied();
        vec![World {
            shard: Shard {
                life: 0,
                armed: true,
                grace: 0,
                epoch: 1,
                counter: 0,
                slot: Slot::Open,
                memory: Memory::default(),
                earlier: None,
            },
            processes: (0..).zip(budgets).map(process).collect(),
            network: Network::default(),
            restarts: self.config.restarts,
            crashes: self.config.crashes,
            ledger: Ledger::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.enabled(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.ledger.happened = None;
        self.happen(&mut next, action);
        self.forget(&mut next);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = safety();
        properties.extend(self.progress());
        let events = self.config.reaches.iter().copied();
        self.chosen(properties, events.map(reached))
    }
}
