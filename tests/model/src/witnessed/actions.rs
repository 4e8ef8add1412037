//! What may happen, and what then does.

use super::{
    Rule, WitnessedModel, World,
    state::{Answer, Doing, LEASE, PROCESSES, Process, Request, Sight, Told, What},
};

/// One step. Numbers are processes.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
#[expect(private_interfaces, reason = "a message is only shown")]
pub enum Action {
    /// Time goes on, for all.
    Tick,
    /// A process asks for the lock, or asks again.
    Ask(u8),
    /// A process releases the lock, or gives up.
    Release(u8),
    /// A process beats.
    Beat(u8),
    /// A process reads another's lock.
    Read(u8),
    /// A request arrives, and is answered.
    Serve(Request),
    /// An answer arrives.
    Hear(Answer),
    /// The store's timer removes a process's beat.
    RemoveBeat(u8),
}

impl WitnessedModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if world.now < self.config.ticks {
            actions.push(Action::Tick);
        }
        for process in 0..PROCESSES as u8 {
            let its = world.process(process);
            let holds = matches!(its.doing, Doing::Holding(_));
            if its.budget.asks > 0 && !holds {
                actions.push(Action::Ask(process));
            }
            if its.budget.releases > 0 && !matches!(its.doing, Doing::Nothing) {
                actions.push(Action::Release(process));
            }
            if its.budget.beats > 0 {
                actions.push(Action::Beat(process));
            }
            if its.budget.reads > 0 && !holds {
                actions.push(Action::Read(process));
            }
            if self.config.store_removes && self.is_forgotten(world, process) {
                actions.push(Action::RemoveBeat(process));
            }
        }
        actions.extend(world.requests.iter().copied().map(Action::Serve));
        actions.extend(world.answers.iter().copied().map(Action::Hear));
    }

    /// Whether the store's timer, which may be early by a lease, may have come to its end.
    fn is_forgotten(&self, world: &World, process: u8) -> bool {
        let leases = match self.holds(Rule::StoreTimersHaveSlack) {
            true => 2,
            false => 1,
        };
        let beat = world.beats[usize::from(process)];
        beat.is_some_and(|beat| world.now - beat.at >= (leases - 1) * LEASE)
    }

    /// The state after it; `None` if it changes nothing.
    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happened = None;
        self.happen(&mut next, action);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => {
                world.now += 1;
                world.see_deadlines();
            }
            Action::Ask(process) => {
                let its = world.process_mut(process);
                its.budget.asks -= 1;
                let sight = match its.doing {
                    Doing::Waiting(sight) => sight,
                    _ => None,
                };
                its.doing = Doing::Waiting(sight);
                let now = world.now;
                let over = sight.filter(|sight| is_over(sight, now));
                world.send(process, What::Ask(over.map(|sight| sight.seen)));
            }
            Action::Release(process) => {
                world.send(process, What::Release);
                let its = world.process_mut(process);
                its.budget.releases -= 1;
                its.end();
                world.forget();
            }
            Action::Beat(process) => {
                world.process_mut(process).budget.beats -= 1;
                world.send(process, What::Beat);
            }
            Action::Read(process) => {
                let its = world.process_mut(process);
                its.budget.reads -= 1;
                if its.doing == Doing::Nothing {
                    its.doing = Doing::Waiting(None);
                }
                world.send(process, What::Read);
            }
            Action::Serve(request) => {
                world.requests.retain(|other| *other != request);
                self.serve(world, request);
            }
            Action::Hear(answer) => {
                world.answers.retain(|other| *other != answer);
                self.hear(world, answer);
            }
            Action::RemoveBeat(process) => world.beats[usize::from(process)] = None,
        }
    }
}

/// Whether what was seen is over, if it still is so. A record whose owner has no beat is over at once.
pub(super) fn is_over(sight: &Sight, now: u8) -> bool {
    let is_unbeaten = sight.seen.beat.is_none() && !sight.seen.is_claim;
    is_unbeaten || now >= sight.since + LEASE
}

impl World {
    fn send(&mut self, from: u8, what: What) {
        let request = Request {
            from,
            nonce: self.process(from).nonce,
            sent: self.now,
            what,
        };
        if !self.requests.contains(&request) {
            self.requests.push(request);
            self.requests.sort_unstable();
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if !self.answers.contains(&answer) {
            self.answers.push(answer);
            self.answers.sort_unstable();
        }
    }

    /// A process whose deadline is over has nothing, and asks with another nonce.
    fn see_deadlines(&mut self) {
        for process in 0..PROCESSES as u8 {
            let (now, its) = (self.now, self.process_mut(process));
            if matches!(its.doing, Doing::Holding(until) if now >= until) {
                its.end();
            }
        }
        self.forget();
    }

    /// Answers that change nothing any more are not kept.
    fn forget(&mut self) {
        let (now, processes) = (self.now, self.processes);
        self.answers.retain(|answer| {
            let is_grant = matches!(answer.what, Told::Granted | Told::Claim);
            let is_late = is_grant && now >= answer.sent + LEASE;
            processes[usize::from(answer.to)].nonce == answer.nonce && !is_late
        });
    }
}

impl Process {
    /// It has nothing, and asks with another nonce.
    fn end(&mut self) {
        self.doing = Doing::Nothing;
        self.nonce += 1;
    }
}
