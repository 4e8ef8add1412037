//! Whether the move can still be finished, and every waiter granted, from a state.

use super::{Action, Ask, SharesModel, Step, World};

/// More rounds of one tick each than it takes.
const ROUNDS: usize = 12;

impl SharesModel {
    /// Whether movers, holders and waiters that do their part come to an end: first the move, while
    /// holders hold; then every wait, once they do not.
    ///
    /// The order of their steps is fixed, so that the answer is found without a search: it may be too
    /// strict, and never too kind.
    pub(super) fn comes_to_rest(&self, world: &World) -> bool {
        let mut world = world.clone();
        world.restarts = 0;
        for process in &mut world.processes {
            process.budget.acquisitions = 0;
            process.budget.renewals = u8::MAX;
            process.budget.rechecks = u8::MAX;
        }
        self.finishes_move(&mut world) && self.ends_waits(&mut world)
    }

    fn finishes_move(&self, world: &mut World) -> bool {
        for _ in 0..ROUNDS {
            if world.migration.is_none_or(|migration| migration.finished) {
                return true;
            }
            self.deliver_all(world);
            self.each(world, Action::Renew, holds);
            self.deliver_all(world);
            self.take_steps(world);
            self.act(world, Action::Tick);
        }
        false
    }

    fn ends_waits(&self, world: &mut World) -> bool {
        for _ in 0..ROUNDS {
            self.deliver_all(world);
            self.each(world, Action::Release, holds);
            self.deliver_all(world);
            let shard = u8::from(world.migration.is_some());
            self.each(world, |process| Action::Recheck { process, shard }, waits);
            self.deliver_all(world);
            let mut processes = world.processes.iter();
            if processes.all(|process| process.waits.is_none()) {
                return true;
            }
            self.act(world, Action::Tick);
        }
        false
    }

    fn act(&self, world: &mut World, action: Action) {
        self.happen(world, action);
        self.forget(world);
    }

    /// Every process of that kind acts.
    fn each(
        &self,
        world: &mut World,
        action: impl Fn(u8) -> Action,
        kind: impl Fn(&World, u8) -> bool,
    ) {
        for process in 0..world.processes.len() as u8 {
            if kind(world, process) {
                self.act(world, action(process));
            }
        }
    }

    /// Unarmed shards are armed, and nothing is under way any more. Releases go last.
    fn deliver_all(&self, world: &mut World) {
        for shard in 0..2 {
            if world.shard(shard).slot.is_none() {
                self.act(world, Action::Arm(shard));
            }
        }
        loop {
            let mut requests = world.network.requests.iter();
            let first = requests.clone().find(|request| request.ask != Ask::Release);
            if let Some(request) = first.or(requests.next()).copied() {
                self.act(world, Action::Deliver(request));
            } else if let Some(turn) = world.network.turns.first().copied() {
                self.act(world, Action::Turn(turn));
            } else {
                break;
            }
        }
    }

    /// The mover's steps in their order. Those that do not apply are refused.
    fn take_steps(&self, world: &mut World) {
        use Step::{Empty, Finish, Import, List, Open, Scan, Seal, Shut};
        for step in [Seal, Import, Scan, List, Empty, Open, Shut, Finish] {
            let mut enabled = Vec::new();
            self.enabled_steps(world, &mut enabled);
            if enabled.contains(&Action::Step(step)) {
                self.act(world, Action::Step(step));
            }
        }
    }
}

fn holds(world: &World, process: u8) -> bool {
    world.processes[usize::from(process)].guard.is_some()
}

fn waits(world: &World, process: u8) -> bool {
    world.processes[usize::from(process)].waits.is_some()
}
