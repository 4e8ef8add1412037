use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    properties::{all, reached},
    state::{Doing, Key, Process},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type SetsModel = Ruled<Configuration, Rule>;

impl Model for SetsModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let wishes = self.config.wishes.iter();
        let processes = wishes.map(|wish| Process {
            call: 0,
            began: 0,
            doing: Doing::Nothing,
            calls: wish.calls,
        });
        vec![World {
            now: 0,
            keys: vec![Key::default(); self.config.keys.into()],
            processes: processes.collect(),
            strays: Vec::new(),
            releases: Vec::new(),
            crashes: self.config.crashes,
            losses: self.config.losses,
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
