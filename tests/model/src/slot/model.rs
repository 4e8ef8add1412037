use stateright::{Model, Property};

use super::{
    Action, Configuration, Nonce, Rule, World,
    ledger::Ledger,
    mover::DONE,
    network::Network,
    properties::{reached, safety},
    state::{Left, Mode, Process, Shard, Slot, View},
    topology::Topology,
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type SlotModel = Ruled<Configuration, Rule>;

impl Model for SlotModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let process = |(index, budget)| Process {
            nonce: Nonce {
                process: index,
                sequence: 0,
            },
            guard: None,
            call: None,
            proven: None,
            view: View {
                removed: false,
                opens: false,
                left: self.view_lease(),
            },
            budget,
            fresh: false,
            expired: None,
            released: 0,
        };
        let budgets = self.config.processes.iter().copied();
        let shard = |index| {
            let mode = if index == 0 { Mode::Open } else { Mode::Shut };
            Shard::new(Slot::new(mode, (1, DONE), 1))
        };
        let mut world = World {
            topology: Topology::new(self.config.shards),
            shards: (0..self.config.shards).map(shard).collect(),
            processes: (0..).zip(budgets).map(process).collect(),
            network: Network::default(),
            left: Left {
                aborts: self.config.aborts,
                restarts: self.config.restarts,
                raises: self.config.raises,
                repeats: self.config.repeats,
            },
            ledger: Ledger::default(),
        };
        if self.config.amid {
            self.begin_amid_a_move(&mut world);
        }
        vec![world]
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
        let events = self.config.reaches.iter().copied();
        self.chosen(safety(), events.map(reached))
    }
}
