//! Whether a state is one from which a topology can still come into use.

use super::{
    Action, FirstUseModel, World,
    state::{Process, Record, Status},
};

/// More than it takes.
const TURNS: usize = 60;

impl FirstUseModel {
    /// Whether one more process, alone and diligent, comes to a topology in use: with either list, for
    /// as long as a process is there.
    ///
    /// What it does first is fixed, so that the answer is found without a search: it may be too strict,
    /// and never too kind.
    pub(super) fn comes_into_use(&self, world: &World) -> bool {
        let dead = |process: &Process| *process == Process::Dead;
        world.processes.iter().all(dead) || (0..2).any(|list| self.succeeds(world, list))
    }

    fn succeeds(&self, world: &World, process: u8) -> bool {
        let mut model = self.clone();
        model.config.foundings = usize::MAX;
        let mut world = World {
            processes: [Process::Looking; 2],
            ..world.clone()
        };
        for _ in 0..TURNS {
            if is_in_use(&world) {
                return true;
            }
            let next = (model.diligence(&world, process).into_iter())
                .find_map(|action| model.after(&world, action));
            let Some(next) = next else {
                return false;
            };
            world = next;
        }
        false
    }

    /// What it tries, in this order.
    fn diligence(&self, world: &World, process: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend(world.joins.iter().map(|&(at, id)| Action::Join { at, id }));
        self.enabled_arms(world, &mut actions);
        self.enabled_help(world, &mut actions);
        // A founding that can be finished is.
        actions.sort_by_key(|action| matches!(action, Action::Void(_)));
        let mut own = Vec::new();
        self.enabled_foundings(world, &mut own);
        let claim = Action::Claim(process);
        actions.extend(own.into_iter().filter(|action| *action == claim));
        actions
    }
}

/// Whether every member of a topology in use is armed in its name.
fn is_in_use(world: &World) -> bool {
    let records = world.servers.iter().filter_map(|server| server.record);
    let mut active = records.filter(|record| record.status == Status::Active);
    active.any(|Record { founding, .. }| {
        let mut members = world.founding(founding).each();
        members.all(|at| world.server(at).armed == Some(founding))
    })
}
