//! What may happen, and what then does.

use super::{
    FirstUseModel, World,
    state::{Process, Server},
};

/// One step. Numbers are processes, servers (`at`) or foundings (`id`).
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// A process begins to found.
    Claim(u8),
    /// A server is asked to join.
    SendJoin {
        /// Which.
        at: u8,
        /// The founding.
        id: u8,
    },
    /// That arrives.
    Join {
        /// Where.
        at: u8,
        /// The founding to join.
        id: u8,
    },
    /// A process brings its founding into use.
    Activate(u8),
    /// A process does not know how its founding stands, or what it went by is gone: it looks again.
    StartOver(u8),
    /// A process ends.
    Crash(u8),
    /// A server is armed.
    Arm {
        /// Which.
        at: u8,
        /// The founding.
        id: u8,
    },
    /// A process brings another's founding into use.
    Help(u8),
    /// A process undoes a founding.
    Void(u8),
    /// A process removes a server's pointer.
    Leave(u8),
    /// A process puts a record back.
    Recover(u8),
    /// A process takes a member in again.
    TakeIn {
        /// Which.
        at: u8,
        /// The founding.
        id: u8,
    },
    /// A server comes back empty.
    Restart(u8),
}

impl FirstUseModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        self.enabled_foundings(world, actions);
        self.enabled_arms(world, actions);
        self.enabled_help(world, actions);
        self.enabled_restarts(world, actions);
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
            Action::Claim(process) => self.claim(world, process),
            Action::SendJoin { at, id } => self.send_join(world, at, id),
            Action::Join { at, id } => self.join(world, at, id),
            Action::Activate(process) => self.activate(world, process),
            Action::StartOver(process) => {
                world.processes[usize::from(process)] = Process::Looking;
            }
            Action::Crash(process) => {
                world.crashes -= 1;
                world.processes[usize::from(process)] = Process::Dead;
            }
            Action::Arm { at, id } => self.arm(world, at, id),
            Action::Help(id) => self.help(world, id),
            Action::Void(id) => self.void(world, id),
            Action::Leave(at) => world.server_mut(at).pointer = None,
            Action::Recover(id) => self.recover(world, id),
            Action::TakeIn { at, id } => self.take_in(world, at, id),
            Action::Restart(at) => {
                world.restarts -= 1;
                let server = world.server_mut(at);
                let life = server.life + 1;
                *server = Server {
                    life,
                    ..Server::default()
                };
            }
        }
    }
}
