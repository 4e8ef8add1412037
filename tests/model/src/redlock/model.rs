use stateright::{Model, Property};

use super::{
    Action, Configuration, Nonce, Rule, World,
    properties::{reached, safety},
    state::{Client, Left, Migration, Mode, Phase, Removal, Shard},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type RedlockModel = Ruled<Configuration, Rule>;

impl Model for RedlockModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let config = &self.config;
        let mut modes = [Mode::Open, Mode::Open, Mode::Open, Mode::Shut];
        if let Some(dead) = config.dead {
            modes[usize::from(dead)] = Mode::Shut;
        }
        let shard = |index: usize| {
            let token = config.tokens[index];
            Shard::new(modes[index], token.epoch, token)
        };
        let client = |process: u8| Client {
            nonce: Nonce {
                process,
                sequence: 0,
            },
            phase: Phase::Idle,
            ranks: Default::default(),
            replaces: None,
            acquisitions: config.acquisitions[usize::from(process)],
            round: 0,
            behind: false,
            knows_removal: false,
            taken: false,
        };
        vec![World {
            shards: [0, 1, 2, 3].map(shard),
            clients: [0, 1].map(client),
            late: Vec::new(),
            migration: Migration::default(),
            removal: Removal::default(),
            epoch: 3,
            left: Left {
                late: config.late,
                restarts: config.restarts,
                raises: config.raising.map_or(0, |_| 1),
                give_backs: config.give_backs,
                forces: config.forces.into(),
                doubts: config.leads.into(),
                steps: config.steps.into(),
            },
            ledger: Default::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.enabled(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.ledger.happened = None;
        self.happen(&mut next, action)?;
        self.forget(&mut next);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let events = self.config.reaches.iter().copied();
        self.chosen(safety(), events.map(reached))
    }
}
