//! What may happen, and what then does.

use super::{
    Event, LegsModel, Rule, World,
    state::{Answer, Caller, Credit, Entry, FUNDS, LEGS, Request},
};

/// One step. Numbers are processes, legs or attempts.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// A process begins an attempt.
    Start(u8, u8),
    /// A process sweeps the destination of a leg, and finds an attempt that is not finished.
    SweepDestination(u8, u8, u8),
    /// A process sweeps the source, and finds a decision.
    SweepSource(u8),
    /// A request arrives, and its answer is received.
    Answer(u8),
    /// A request of before arrives, or arrives again; its answer is lost.
    Arrive(Request),
    /// A process asks the source what it decided.
    Ask(u8),
    /// A process gives up, or ends.
    GiveUp(u8),
    /// A process ends for good.
    Crash(u8),
    /// The reservation expires.
    Expire,
    /// Others deposit a coin at the second destination.
    Deposit,
    /// Others spend one there.
    Spend,
    /// The second destination is closed.
    Close,
    /// A destination forgets.
    Forget(u8),
    /// A destination loses a promise of the first attempt.
    Lose(u8),
}

const SECOND: u8 = 1;

impl LegsModel {
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        for (process, caller) in (0..).zip(&world.callers) {
            self.enabled_for(world, process, caller, actions);
        }
        actions.extend(world.sent.iter().map(|request| Action::Arrive(*request)));
        let is_held = world.source.entry == Entry::Held;
        let expires_late =
            self.breaks(Rule::DecisionsStand) && matches!(world.source.entry, Entry::Committed(_));
        if is_held || expires_late {
            actions.push(Action::Expire);
        }
        let second = world.destination(SECOND);
        if self.config.is_used {
            if second.room > 0 && !second.closed {
                actions.push(Action::Deposit);
            }
            if second.value > 0 {
                actions.push(Action::Spend);
            }
        }
        if self.config.closes && !second.closed {
            actions.push(Action::Close);
        }
        for leg in 0..LEGS as u8 {
            if self.config.forgets && !world.destination(leg).forgetful {
                actions.push(Action::Forget(leg));
            }
            if world.losses > 0 && world.credit(leg, 0) == Credit::Promised {
                actions.push(Action::Lose(leg));
            }
        }
    }

    fn enabled_for(&self, world: &World, process: u8, caller: &Caller, actions: &mut Vec<Action>) {
        match caller {
            Caller::Idle => {
                actions.extend((0..self.config.attempts).map(|at| Action::Start(process, at)));
                if matches!(world.source.entry, Entry::Committed(_)) {
                    actions.push(Action::SweepSource(process));
                }
                let open = |credit| matches!(credit, Credit::Promised | Credit::Pinned);
                for (leg, attempt) in self.legs() {
                    if open(world.credit(leg, attempt)) {
                        actions.push(Action::SweepDestination(process, leg, attempt));
                    }
                }
            }
            Caller::Waits { .. } => {
                actions.push(Action::Answer(process));
                actions.push(Action::GiveUp(process));
            }
            Caller::Asks { .. } => actions.push(Action::Ask(process)),
            Caller::Dead => return,
        }
        if world.crashes > 0 && *caller != Caller::Idle {
            actions.push(Action::Crash(process));
        }
    }

    /// Each leg of each attempt.
    pub(super) fn legs(&self) -> impl Iterator<Item = (u8, u8)> + use<> {
        let attempts = self.config.attempts;
        (0..LEGS as u8).flat_map(move |leg| (0..attempts).map(move |attempt| (leg, attempt)))
    }

    pub(super) fn after(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happened = None;
        self.happen(&mut next, action);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Start(process, attempt) => self.start(world, process, attempt),
            Action::SweepDestination(process, leg, attempt) => {
                self.sweep(world, process, leg, attempt);
            }
            Action::SweepSource(process) => {
                if let Entry::Committed(attempt) = world.source.entry {
                    self.pay(world, process, attempt);
                }
            }
            Action::Answer(process) => {
                if let Caller::Waits { request, .. } = world.callers[usize::from(process)] {
                    let answer = self.arrive(world, request);
                    self.receive(world, process, answer);
                }
            }
            Action::Arrive(request) => _ = self.arrive(world, request),
            Action::Ask(process) => {
                let entry = Answer::Entry(world.source.entry);
                self.receive(world, process, entry);
            }
            Action::GiveUp(process) => self.give_up(world, process),
            Action::Crash(process) => {
                world.crashes -= 1;
                world.callers[usize::from(process)] = Caller::Dead;
            }
            _ => self.happen_around(world, action),
        }
    }

    /// What no process of ours does.
    fn happen_around(&self, world: &mut World, action: Action) {
        match action {
            Action::Expire => {
                let promised = self
                    .legs()
                    .any(|(leg, at)| world.credit(leg, at) == Credit::Promised);
                world.happened = promised.then_some(Event::ExpiredWhilePromised);
                world.source.value += match world.source.entry {
                    Entry::Held => FUNDS,
                    _ => LEGS as u8,
                };
                world.source.entry = Entry::Over;
            }
            Action::Deposit => {
                world.others += 1;
                let second = world.destination_mut(SECOND);
                second.value += 1;
                second.room -= 1;
            }
            Action::Spend => {
                world.others -= 1;
                let second = world.destination_mut(SECOND);
                second.value -= 1;
                second.room += 1;
            }
            Action::Close => world.destination_mut(SECOND).closed = true,
            Action::Forget(leg) => self.forget(world, leg),
            Action::Lose(leg) => {
                world.losses -= 1;
                let destination = world.destination_mut(leg);
                destination.credits[0] = Credit::Unknown;
                destination.room += 1;
            }
            _ => {}
        }
    }

    fn forget(&self, world: &mut World, leg: u8) {
        let pinned_too = self.breaks(Rule::PinnedUntilFinished);
        let destination = world.destination_mut(leg);
        destination.forgetful = true;
        for credit in &mut destination.credits {
            if matches!(credit, Credit::Forgettable | Credit::Refused)
                || pinned_too && *credit == Credit::Pinned
            {
                *credit = Credit::Unknown;
            }
        }
    }
}
