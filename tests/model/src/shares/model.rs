use stateright::{Model, Property};

use super::{
    Action, Configuration, Nonce, Participant, Rule, World,
    ledger::Ledger,
    mover::DONE,
    network::Network,
    properties::{reached, safety},
    state::{Memory, Mode, Process, Shard, Slot},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type SharesModel = Ruled<Configuration, Rule>;

impl Model for SharesModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let process = |(index, Participant { budget, .. })| Process {
            nonce: Nonce {
                process: index,
                sequence: 0,
            },
            waits: None,
            guard: None,
            asked: 0,
            proof: None,
            budget,
            fresh: false,
        };
        let shard = |mode| Shard {
            life: 0,
            slot: Some(Slot::new(mode, (1, DONE), 1)),
            memory: Memory::default(),
            earlier: Vec::new(),
        };
        let participants = self.config.participants.iter().copied();
        vec![World {
            shards: [shard(Mode::Open), shard(Mode::Shut)],
            processes: (0..).zip(participants).map(process).collect(),
            network: Network::default(),
            migration: None,
            epoch: 1,
            ticks: self.config.ticks,
            restarts: u8::from(!self.config.restarting.is_empty()),
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
        let events = self.config.reaches.iter().copied();
        self.chosen(safety(), events.map(reached))
    }
}
