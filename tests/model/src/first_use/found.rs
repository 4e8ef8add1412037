//! A process founds a topology on its list: claim the home, join the others, bring it into use.

use super::{
    Action, Event, FirstUseModel, Rule, World,
    state::{Founding, Process, Record, SERVERS, Status},
};

impl FirstUseModel {
    pub(super) fn enabled_foundings(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, process) in (0..).zip(&world.processes) {
            match *process {
                Process::Looking if self.is_virgin(world, index) => {
                    actions.push(Action::Claim(index));
                }
                Process::Founding { id, joined } => {
                    let next = world.founding(id).each().find(|at| joined >> at & 1 == 0);
                    actions.push(match next {
                        Some(at) => Action::SendJoin { at, id },
                        None => Action::Activate(index),
                    });
                    actions.push(Action::StartOver(index));
                }
                Process::Joined { id } if world.status(id).is_none() => {
                    actions.push(Action::StartOver(index));
                }
                _ => {}
            }
            let began = !matches!(process, Process::Looking | Process::Dead);
            if began && world.crashes > 0 {
                actions.push(Action::Crash(index));
            }
        }
        actions.extend(world.joins.iter().map(|&(at, id)| Action::Join { at, id }));
    }

    /// Whether no server of the process's list has a trace of a topology.
    fn is_virgin(&self, world: &World, process: u8) -> bool {
        let list = self.config.lists[usize::from(process)];
        let copies = self.holds(Rule::PointersOfTheArmedStay);
        let virgin = list.iter().all(|at| {
            let server = world.server(*at);
            let copy = server.armed.filter(|_| copies);
            server.pointer.or(copy).is_none() && server.record.is_none()
        });
        virgin && world.foundings.len() < self.config.foundings
    }

    /// A record in creation and a pointer, at the home.
    pub(super) fn claim(&self, world: &mut World, process: u8) {
        let list = self.config.lists[usize::from(process)];
        let id = world.foundings.len() as u8;
        let home = list[0];
        let mut lives = [0; SERVERS];
        for server in list {
            lives[usize::from(*server)] = world.server(*server).life;
        }
        world.foundings.push(Founding {
            members: list.iter().fold(0, |bits, server| bits | 1 << server),
            home,
            lives,
            was_active: false,
        });
        let server = world.server_mut(home);
        server.pointer = Some(id);
        server.record = Some(Record {
            founding: id,
            status: Status::Creating,
        });
        world.processes[usize::from(process)] = Process::Founding {
            id,
            joined: 1 << home,
        };
    }

    /// It arrives once, however late.
    pub(super) fn send_join(&self, world: &mut World, at: u8, id: u8) {
        if let Err(place) = world.joins.binary_search(&(at, id)) {
            world.joins.insert(place, (at, id));
        }
    }

    pub(super) fn join(&self, world: &mut World, at: u8, id: u8) {
        world.joins.retain(|join| *join != (at, id));
        let founding = world.founding(id);
        let server = world.server_mut(at);
        let free = server.pointer.is_none() && founding.knows_life(at, server.life);
        if free {
            server.pointer = Some(id);
        } else if server.pointer != Some(id) {
            return;
        }
        for process in &mut world.processes {
            match process {
                Process::Founding { id: own, joined } if *own == id => *joined |= 1 << at,
                _ => {}
            }
        }
    }

    /// All have joined: the process that claimed brings it into use.
    pub(super) fn activate(&self, world: &mut World, process: u8) {
        let Process::Founding { id, .. } = world.processes[usize::from(process)] else {
            return;
        };
        if world.status(id).is_some() {
            world.bring_into_use(id);
            world.processes[usize::from(process)] = Process::Joined { id };
            world.happened = Some(Event::Activated);
        }
    }

    pub(super) fn enabled_arms(&self, world: &World, actions: &mut Vec<Action>) {
        let early = self.breaks(Rule::OnlyActiveArms);
        for (id, founding) in (0..).zip(&world.foundings) {
            if founding.was_active || early {
                actions.extend(founding.each().map(|at| Action::Arm { at, id }));
            }
        }
    }

    pub(super) fn arm(&self, world: &mut World, at: u8, id: u8) {
        let founding = world.founding(id);
        let blind = self.breaks(Rule::OnlyActiveArms);
        let server = world.server_mut(at);
        let pointed = server.pointer == Some(id) || blind;
        if founding.knows_life(at, server.life) && server.armed.is_none() && pointed {
            server.armed = Some(id);
        }
    }
}

impl World {
    pub(super) fn bring_into_use(&mut self, id: u8) {
        let founding = &mut self.foundings[usize::from(id)];
        founding.was_active = true;
        let home = founding.home;
        self.server_mut(home).record = Some(Record {
            founding: id,
            status: Status::Active,
        });
    }
}
