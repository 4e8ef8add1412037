//! What may happen, and what then does.

use super::{
    SetsModel, World,
    process::each,
    state::{Doing, Stray},
};
use crate::words::Nonce;

/// One step. Numbers are processes, then keys.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
#[expect(private_interfaces, reason = "a message is only shown")]
pub enum Action {
    /// Time goes on, for all: those that live renew, and calls whose deadline is over end.
    Tick,
    /// A process asks for all its keys at once.
    Call(u8),
    /// The try of a key arrives, and is answered.
    Try(u8, u8),
    /// The request of a waiter arrives.
    Ask(u8),
    /// A waiter learns that it has the key.
    Hear(u8),
    /// A process gives its set back.
    Release(u8),
    /// A process crashes.
    Crash(u8),
    /// A lock is lost that its holder renews.
    Lose(u8),
    /// A request arrives whose call is over.
    Stray(Stray),
    /// A release arrives: of a key.
    Released(u8, Nonce),
}

impl SetsModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if world.now < self.config.ticks {
            actions.push(Action::Tick);
        }
        for process in 0..world.processes.len() as u8 {
            self.enabled_of(world, process, actions);
        }
        if world.losses > 0 {
            let held = (0..self.config.keys).filter(|key| world.key(*key).record.is_some());
            actions.extend(held.map(Action::Lose));
        }
        actions.extend(world.strays.iter().copied().map(Action::Stray));
        let releases = world.releases.iter();
        actions.extend(releases.map(|(key, nonce)| Action::Released(*key, *nonce)));
    }

    fn enabled_of(&self, world: &World, process: u8, actions: &mut Vec<Action>) {
        let its = world.process(process);
        match its.doing {
            Doing::Dead(_) => return,
            Doing::Nothing if its.calls > 0 => actions.push(Action::Call(process)),
            Doing::Nothing => {}
            Doing::Trying { unanswered, .. } => {
                actions.extend(each(unanswered).map(|key| Action::Try(process, key)));
            }
            Doing::Waiting { held, .. } => {
                let next = self.next_of(process, held);
                let nonce = world.of_waits(process);
                actions.extend(next.map(|key| {
                    let record = world.key(key).record;
                    match record.is_some_and(|record| record.nonce == nonce) {
                        true => Action::Hear(process),
                        false => Action::Ask(process),
                    }
                }));
            }
            Doing::Has => actions.push(Action::Release(process)),
        }
        if world.crashes > 0 {
            actions.push(Action::Crash(process));
        }
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
                // A release that was sent before arrives by now.
                for (key, nonce) in std::mem::take(&mut world.releases) {
                    self.release_key(world, key, nonce);
                }
                for process in 0..world.processes.len() as u8 {
                    self.renew(world, process);
                    self.time_out(world, process);
                }
                self.expire(world);
                // What a process sent before it crashed arrives soon, or never.
                let processes = &world.processes;
                world.strays.retain(|stray| {
                    let its = &processes[usize::from(stray.nonce.process)];
                    !matches!(its.doing, Doing::Dead(_))
                });
            }
            Action::Call(process) => self.call(world, process),
            Action::Try(process, key) => self.tried(world, process, key),
            Action::Ask(process) => {
                let held = world.process(process).doing.held(0);
                if let Some(key) = self.next_of(process, held) {
                    let nonce = world.of_waits(process);
                    self.ask_for_key(world, key, nonce);
                }
            }
            Action::Hear(process) => self.hear(world, process),
            Action::Release(process) => self.end(world, process, self.all_of(process)),
            Action::Crash(process) => self.crash(world, process),
            Action::Lose(key) => {
                world.losses -= 1;
                let record = world.key(key).record;
                if let Some(record) = record {
                    self.release_key(world, key, record.nonce);
                }
            }
            Action::Stray(stray) => {
                world.strays.retain(|other| *other != stray);
                self.stray(world, stray);
            }
            Action::Released(key, nonce) => {
                world.releases.retain(|other| *other != (key, nonce));
                self.release_key(world, key, nonce);
            }
        }
    }
}
