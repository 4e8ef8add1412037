use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    properties::{all, reached},
    state::{Process, SERVERS, Server},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type FirstUseModel = Ruled<Configuration, Rule>;

impl Model for FirstUseModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            servers: vec![Server::default(); SERVERS],
            processes: [Process::Looking; 2],
            foundings: Vec::new(),
            joins: Vec::new(),
            crashes: self.config.crashes,
            restarts: self.config.restarts,
            happened: None,
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
