//! What may happen, and what then does.

use super::{Ask, Request, SegmentsModel, Verb, World, network::Answer, state::Phase};

/// One step. Numbers are segments, tasks or operations.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// A task begins.
    Start {
        /// Which.
        task: u8,
        /// The layout that it knows.
        layout: u8,
    },
    /// A request reaches its segment, for the first time or again.
    Deliver {
        /// Which.
        request: Request,
        /// Whether its answer arrives.
        heard: bool,
    },
    /// A task dies.
    Crash(u8),
    /// A task learns of a newer layout.
    Reread(u8),
    /// A freeze ends.
    Thaw(u8),
    /// A segment gives back what was reserved for too long.
    Expire {
        /// Which.
        segment: u8,
        /// What.
        operation: u8,
    },
    /// A segment's mark rises.
    Purge(u8),
    /// A new layout is planned, from that time on.
    Plan(u8),
    /// A segment is prepared for it.
    Prepare {
        /// For which plan.
        plan: u8,
        /// Which.
        segment: u8,
    },
    /// It comes into force.
    Commit,
    /// A segment restarts without its last changes.
    Lose {
        /// Which.
        segment: u8,
        /// How many.
        changes: u8,
    },
    /// A server restarts without its segment.
    Vanish(u8),
    /// A person has a segment that is gone replaced.
    Replace(u8),
    /// A person reads the versions of all segments.
    ReadVersions,
    /// A person accepts a segment as it is.
    Accept(u8),
    /// The account that does not exist is created.
    Create(u8),
    /// The manifest goes back to one of those before.
    LoseManifest(u8),
    /// It is restored.
    Restore,
}

impl SegmentsModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        self.enabled_tasks(world, actions);
        for request in &world.network {
            let request = request.clone();
            if !matches!(request.ask, Ask::Collect { .. } | Ask::Forget) {
                actions.push(Action::Deliver {
                    request: request.clone(),
                    heard: false,
                });
            }
            actions.push(Action::Deliver {
                request,
                heard: true,
            });
        }
        self.enabled_segments(world, actions);
        let absent = self.config.absent;
        let absent = absent.filter(|index| !world.segment(*index).exists);
        actions.extend(absent.map(Action::Create));
        self.enabled_layouts(world, actions);
    }

    fn enabled_tasks(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, task) in (0..).zip(&world.tasks) {
            if task.phase == Phase::Idle && self.may_start(world, index) {
                let layouts = [0]
                    .into_iter()
                    .chain(world.manifest.in_use().iter().copied());
                actions.extend(layouts.map(|layout| Action::Start {
                    task: index,
                    layout,
                }));
            }
            if world.left.crashes > 0 && !matches!(task.phase, Phase::Idle | Phase::Over) {
                actions.push(Action::Crash(index));
            }
            if self.may_reread(world, index) {
                actions.push(Action::Reread(index));
            }
        }
    }

    /// Reservations are confirmed or cancelled only after a request for them.
    fn may_start(&self, world: &World, task: u8) -> bool {
        let caller = self.config.caller(task);
        let mut others = self.config.callers.iter().zip(&world.tasks);
        caller.verb == Verb::Operate
            || others.any(|(other, task)| {
                other.operation == caller.operation
                    && other.verb == Verb::Operate
                    && task.phase != Phase::Idle
            })
    }

    fn enabled_segments(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, segment) in world.each() {
            if segment.frozen.is_some() {
                actions.push(Action::Thaw(index));
            }
            let entries = (0..).zip(&segment.entries);
            let expire = entries.filter(|(operation, entry)| {
                entry.is_some_and(|entry| self.may_expire(entry, *operation))
            });
            actions.extend(expire.map(|(operation, _)| Action::Expire {
                segment: index,
                operation,
            }));
            if world.left.purges > 0 && segment.exists {
                actions.push(Action::Purge(index));
            }
            if world.left.losses > 0 {
                let earlier = 1..=world.earlier[usize::from(index)].len() as u8;
                actions.extend(earlier.map(|changes| Action::Lose {
                    segment: index,
                    changes,
                }));
            }
            if world.left.vanishings > 0 && segment.exists {
                actions.push(Action::Vanish(index));
            }
            if segment.gone {
                actions.push(Action::Replace(index));
            }
            if self.may_accept(world, index) {
                actions.push(Action::Accept(index));
            }
        }
        if world.each().any(|(_, segment)| segment.awaits) {
            actions.push(Action::ReadVersions);
        }
    }

    fn enabled_layouts(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend(self.next_plan(world).map(Action::Plan));
        let plans = 1..=world.manifest.plans.len() as u8;
        for (segment, part) in self.parts(world) {
            let prepares = plans.clone().filter(|plan| *plan > part.layout);
            actions.extend(prepares.map(|plan| Action::Prepare { plan, segment }));
        }
        if self.is_prepared(world) {
            actions.push(Action::Commit);
        }
        if world.left.manifest_losses > 0 {
            let earlier = 0..self.earlier_manifests(world).len() as u8;
            actions.extend(earlier.map(Action::LoseManifest));
        }
        if self.may_restore(world) {
            actions.push(Action::Restore);
        }
    }

    /// The state after it; `None` if it changes nothing.
    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.happen(&mut next, action);
        self.remember(&mut next, world);
        self.witness(&mut next);
        self.forget(&mut next);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Start { task, layout } => self.start(world, task, layout),
            Action::Deliver { request, heard } => self.deliver(world, &request, heard),
            Action::Crash(task) => {
                world.left.crashes -= 1;
                self.stop(world, task);
            }
            Action::Reread(task) => self.reread(world, task),
            Action::Thaw(segment) => world.segment_mut(segment).frozen = None,
            Action::Expire { segment, operation } => self.expire(world, segment, operation),
            Action::Purge(segment) => self.purge(world, segment),
            Action::Plan(from) => self.plan(world, from),
            Action::Prepare { plan, segment } => self.prepare(world, plan, segment),
            Action::Commit => self.commit(world),
            Action::Lose { segment, changes } => self.lose(world, segment, changes),
            Action::Vanish(segment) => self.vanish(world, segment),
            Action::Replace(segment) => self.replace(world, segment),
            Action::ReadVersions => self.read_versions(world),
            Action::Accept(segment) => self.accept(world, segment),
            Action::Create(segment) => self.create(world, segment),
            Action::LoseManifest(earlier) => {
                world.left.manifest_losses -= 1;
                world.manifest = self
                    .earlier_manifests(world)
                    .swap_remove(usize::from(earlier));
            }
            Action::Restore => self.restore(world),
        }
    }

    /// A script runs, and its answer is heard by the task, if that still waits for it.
    pub(super) fn deliver(&self, world: &mut World, request: &Request, heard: bool) {
        let answer = self.run(world, request);
        if heard && self.awaits(world, request) {
            self.hear(world, request, answer);
        }
    }

    /// The scripts, each one atomic step of one segment.
    fn run(&self, world: &mut World, request: &Request) -> Answer {
        if world.segment(request.segment).gone {
            return Answer::Missing;
        }
        match &request.ask {
            Ask::Operate(lands) => self.operate_at(world, request, lands),
            Ask::Collect { .. } => self.collect_at(world, request),
            Ask::Lend { to, landed, want } => self.lend_at(world, request, (*to, *landed, *want)),
            Ask::Land(land) => self.land_alone(world, request, *land),
            Ask::Refuse { version } => self.refuse_at(world, request, *version),
            Ask::Credit => self.credit_at(world, request),
            Ask::RefuseThere => self.refuse_there(world, request),
            Ask::FinishTransfer { credited } => self.finish_transfer_at(world, request, *credited),
            Ask::Forget => self.forget_at(world, request),
            Ask::Confirm => self.confirm_at(world, request),
            Ask::Cancel => self.cancel_at(world, request),
        }
    }
}
