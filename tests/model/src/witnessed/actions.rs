//! What may happen, and what then does.

use super::{
    WitnessedModel, World,
    state::{Aim, Answer, Doing, PROCESSES, Process, Request, Told},
};

/// One step. Numbers are processes.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
#[expect(private_interfaces, reason = "a message is only shown")]
pub enum Action {
    /// Time goes on, for all.
    Tick,
    /// A process asks for the lock, asks again, or renews it.
    Ask(u8, Way),
    /// A process asks for another lock, and so learns what the clock is.
    Look(u8, Way),
    /// A process releases the lock, or gives up.
    Release(u8, Way),
    /// A request arrives, and is answered.
    Serve(Request),
    /// An answer arrives.
    Hear(Answer),
}

/// How a read travels.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Way {
    /// It is answered at once.
    Quick,
    /// Its answer comes later, or never.
    LateAnswer,
    /// It arrives later, or never, and so does its answer.
    Late,
    /// There is none. Only a commit is sent, by the document and the clock as the process knows them.
    Recalled,
}

impl Way {
    fn all(lates: u8) -> &'static [Self] {
        match lates {
            0 => &[Self::Quick],
            _ => &[Self::Quick, Self::LateAnswer, Self::Late],
        }
    }
}

impl WitnessedModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if world.now < self.config.ticks {
            actions.push(Action::Tick);
        }
        for process in 0..PROCESSES as u8 {
            let its = world.process(process);
            let ways = Way::all(world.lates).iter();
            let recalled = [Way::Recalled];
            let recalled = recalled.iter().filter(|_| self.config.recalls);
            let changing = ways.clone().chain(recalled);
            if its.budget.asks > 0 {
                actions.extend(changing.clone().map(|way| Action::Ask(process, *way)));
            }
            if its.budget.looks > 0 {
                actions.extend(ways.map(|way| Action::Look(process, *way)));
            }
            if its.budget.releases > 0 && its.doing != Doing::Nothing {
                actions.extend(changing.map(|way| Action::Release(process, *way)));
            }
        }
        actions.extend(world.requests.iter().copied().map(Action::Serve));
        actions.extend(world.answers.iter().copied().map(Action::Hear));
    }

    /// The state after it; `None` if it changes nothing.
    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happened = None;
        self.happen(&mut next, action);
        next.forget(self.config.lease);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => {
                world.now += 1;
                world.see_deadlines();
            }
            Action::Ask(process, way) => {
                let its = world.process_mut(process);
                its.budget.asks -= 1;
                if its.doing == Doing::Nothing {
                    its.doing = Doing::Waiting;
                }
                self.read(world, process, Aim::Ask, way);
            }
            Action::Look(process, way) => {
                world.process_mut(process).budget.looks -= 1;
                self.read(world, process, Aim::Look, way);
            }
            Action::Release(process, way) => {
                self.read(world, process, Aim::Release, way);
                let its = world.process_mut(process);
                its.budget.releases -= 1;
                its.end();
            }
            Action::Serve(request) => {
                world.requests.retain(|other| *other != request);
                self.serve(world, request);
            }
            Action::Hear(answer) => {
                world.answers.retain(|other| *other != answer);
                self.hear(world, answer);
            }
        }
    }

    fn read(&self, world: &mut World, from: u8, aim: Aim, way: Way) {
        match way {
            Way::Recalled => return self.recall(world, from, aim),
            Way::Quick => {}
            Way::LateAnswer | Way::Late => world.lates -= 1,
        }
        let (now, its) = (world.now, world.process(from));
        let tick = its.sight.and_then(|sight| self.tick(&sight, now));
        let request = Request {
            from,
            nonce: its.nonce,
            sent: now,
            aim,
            tick,
        };
        if way == Way::Late {
            return world.request(request);
        }
        self.serve(world, request);
        let answered = |answer: &Answer| {
            let is_read = matches!(answer.what, Told::Read { .. });
            is_read && (answer.to, answer.sent) == (from, now)
        };
        if way == Way::Quick
            && let Some(at) = world.answers.iter().position(answered)
        {
            let answer = world.answers.remove(at);
            self.hear(world, answer);
        }
    }
}

impl World {
    pub(super) fn request(&mut self, request: Request) {
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
    }

    /// Answers that change nothing any more are not kept.
    fn forget(&mut self, lease: u8) {
        let (now, version, processes) = (self.now, self.document.version, self.processes);
        self.answers.retain(|answer| {
            let its = &processes[usize::from(answer.to)];
            match answer.what {
                Told::Granted | Told::Claimed => {
                    its.nonce == answer.nonce && now < answer.sent + 2 * lease
                }
                Told::Read {
                    clock, document, ..
                } => {
                    let knows_later = its
                        .sight
                        .is_some_and(|sight| sight.clock.revision > clock.revision);
                    !knows_later || document.version == version
                }
            }
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
