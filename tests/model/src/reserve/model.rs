use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    properties::{all, reached},
    state::{SESSIONS, Session},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type ReserveModel = Ruled<Configuration, Rule>;

impl Model for ReserveModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let [reads, acquires, adopts] = self.config.budget;
        let session = Session {
            reads,
            acquires,
            adopts,
            ..Session::default()
        };
        vec![World {
            now: 0,
            last: 0,
            head: 1,
            document: None,
            versions: 0,
            granted: 0,
            fell: false,
            sessions: [session; SESSIONS],
            moves: self.config.moves,
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
