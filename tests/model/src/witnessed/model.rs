use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    properties::{all, reached},
    state::{Clock, Document, Doing, Process},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type WitnessedModel = Ruled<Configuration, Rule>;

impl Model for WitnessedModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let process = |budget| Process {
            nonce: 1,
            doing: Doing::Nothing,
            sight: None,
            budget,
        };
        vec![World {
            now: 0,
            clock: Clock {
                revision: 1,
                shows: 0,
            },
            document: Document {
                version: 1,
                record: None,
                ticket: None,
            },
            processes: self.config.budgets.map(process),
            lates: self.config.lates,
            requests: Vec::new(),
            answers: Vec::new(),
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
