//! Whether a state is one from which everything can still be finished.

use super::{
    Ask, Kind, Request, SegmentsModel, Verb, World,
    state::{Credit, Left, Outcome, Phase, Task},
};

/// More than it takes.
const TURNS: usize = 100;

impl SegmentsModel {
    /// Whether one diligent engine, alone and without any more faults, gets an answer to every operation,
    /// and leaves no transfer half done. A person has accepted every segment first.
    pub(super) fn can_finish(&self, world: &World) -> bool {
        let mut accepted = world.clone();
        self.accept_all(&mut accepted);
        let mut world = self.alone(&accepted);
        for (index, caller) in (0..).zip(&self.config.callers) {
            if caller.verb != Verb::Operate {
                continue;
            }
            world.ledger.fate(caller.operation).told.clear();
            self.start(&mut world, index, 0);
            let answered =
                self.drive(&mut world, index) && !world.ledger.told(caller.operation).is_empty();
            if !answered {
                return false;
            }
        }
        self.sweep(&mut world);
        self.is_finished(&world)
    }

    /// The others are gone, and so is what they sent; freezes are over.
    fn alone(&self, world: &World) -> World {
        let mut world = World {
            tasks: vec![Task::default(); world.tasks.len()],
            network: Default::default(),
            left: Left {
                rounds: u8::MAX,
                crashes: 0,
                purges: 0,
                losses: 0,
                vanishings: 0,
                manifest_losses: 0,
            },
            ..world.clone()
        };
        thaw(&mut world);
        world
    }

    /// Goes on until the task is over. Whether it came to that.
    fn drive(&self, world: &mut World, task: u8) -> bool {
        for _ in 0..TURNS {
            match world.task(task).phase {
                Phase::Over => {
                    thaw(world);
                    return true;
                }
                Phase::Outdated => {
                    self.finish_plan(world);
                    if !self.may_reread(world, task) {
                        return false;
                    }
                    self.reread(world, task);
                }
                _ => {
                    let mut requests = world.network.iter();
                    let next = requests.find(|request| self.awaits(world, request));
                    let Some(next) = next.cloned() else {
                        return false;
                    };
                    world.network.remove(&next);
                    self.deliver(world, &next, true);
                }
            }
        }
        false
    }

    /// A task that is told to use a newer layout makes sure that there is one.
    fn finish_plan(&self, world: &mut World) {
        if self.may_restore(world) {
            self.restore(world);
        }
        for _ in 0..2 {
            let Some(number) = world.manifest.pending else {
                return;
            };
            for segment in self.config.segments(0, u8::MAX) {
                self.prepare(world, number, segment);
            }
            self.commit(world);
            if world.manifest.pending.is_some() {
                self.plan(world, self.after_all(world));
            }
        }
    }

    /// A task that finds a pinned credit finishes the transfer at its source, or finds it finished, and unpins it.
    fn sweep(&self, world: &mut World) {
        for (task, caller) in (0..).zip(&self.config.callers) {
            let pinned = Some(Credit::Pinned);
            let mut segments = world.segments.iter();
            if caller.verb == Verb::Operate
                && segments.any(|segment| segment.credits[usize::from(caller.operation)] == pinned)
            {
                world.task(task).layout = world.manifest.newest();
                self.credited(world, task, true);
                self.drive(world, task);
            }
        }
        let forgets: Vec<Request> = (world.network.iter())
            .filter(|request| request.ask == Ask::Forget)
            .cloned()
            .collect();
        for request in forgets {
            self.deliver(world, &request, true);
        }
    }

    /// No transfer is held at its source, or pinned at its destination.
    fn is_finished(&self, world: &World) -> bool {
        let operations = &self.config.operations;
        world.segments.iter().all(|segment| {
            let mut entries = segment.entries.iter().zip(operations);
            let held = entries.any(|(entry, operation)| {
                let held = entry.is_some_and(|entry| entry.outcome == Outcome::Held);
                held && matches!(operation.kind, Kind::Transfer { .. })
            });
            !held && !segment.credits.contains(&Some(Credit::Pinned))
        })
    }
}

fn thaw(world: &mut World) {
    for segment in &mut world.segments {
        segment.frozen = None;
    }
}
