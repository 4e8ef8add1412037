use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    properties::{all, reached},
    state::{ATTEMPTS, Caller, Credit, Destination, Entry, FUNDS, LEGS, Source},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type LegsModel = Ruled<Configuration, Rule>;

impl Model for LegsModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let source = match self.config.captures {
            true => Source {
                value: 0,
                entry: Entry::Held,
            },
            false => Source {
                value: FUNDS,
                entry: Entry::Unseen,
            },
        };
        let destination = Destination {
            value: 0,
            room: self.config.room,
            closed: false,
            forgetful: false,
            credits: [Credit::Unknown; ATTEMPTS],
            paid: [0; ATTEMPTS],
        };
        vec![World {
            source,
            destinations: [destination; LEGS],
            callers: vec![Caller::Idle; self.config.callers.into()],
            sent: Vec::new(),
            crashes: self.config.crashes,
            losses: self.config.losses,
            others: 0,
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
