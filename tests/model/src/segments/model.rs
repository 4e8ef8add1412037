use std::collections::BTreeSet;

use stateright::{Model, Property};

use super::{
    Action, Configuration, Rule, World,
    layout::Manifest,
    ledger::{Fate, Ledger, Seen},
    properties::{all, reached},
    state::{Left, Segment, Task},
};
use crate::ruled::Ruled;

/// A configuration, with all rules or without one.
pub type SegmentsModel = Ruled<Configuration, Rule>;

impl Model for SegmentsModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let config = &self.config;
        let segment = |(index, value): (u8, &i8)| {
            let in_use = config.accounts[usize::from(index)] > 0 || index < config.at_first;
            let exists = in_use && config.absent != Some(index);
            Segment::new(exists, *value)
        };
        vec![World {
            segments: (0..).zip(&config.values).map(segment).collect(),
            earlier: vec![Vec::new(); config.values.len()],
            tasks: vec![Task::default(); config.callers.len()],
            network: BTreeSet::new(),
            manifest: Manifest::default(),
            refused: 0,
            read: None,
            left: Left {
                rounds: config.rounds,
                crashes: config.crashes,
                purges: config.purges,
                losses: config.losses,
                vanishings: config.vanishings,
                manifest_losses: config.manifest_losses,
            },
            ledger: Ledger {
                inside: config.values.iter().sum(),
                lost: 0,
                fates: vec![Fate::default(); config.operations.len()],
                seen: vec![Seen::default(); config.callers.len()],
                untrue: false,
                late: false,
            },
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
