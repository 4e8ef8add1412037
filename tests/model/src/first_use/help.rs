//! A process that finds a pointer asks its home, and finishes or undoes the founding there.

use super::{
    Action, Event, FirstUseModel, Rule, World,
    state::{SERVERS, Status},
};

impl FirstUseModel {
    pub(super) fn enabled_help(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, server) in (0..).zip(&world.servers) {
            let Some(id) = server.pointer else {
                continue;
            };
            match world.status(id) {
                Some(Status::Creating) => {
                    actions.extend(self.next_of(world, id));
                    if self.holds(Rule::ClaimsAreUndone) {
                        actions.push(Action::Void(id));
                    }
                }
                Some(Status::Active) => {}
                None if self.is_in_use(world, id) => actions.push(Action::Recover(id)),
                None => actions.push(Action::Leave(at)),
            }
            let at_sight = self.breaks(Rule::HomeIsAskedFirst);
            if at_sight && server.armed.is_none() {
                actions.push(Action::Leave(at));
            }
        }
        for id in 0..world.foundings.len() as u8 {
            if world.status(id) == Some(Status::Active) {
                actions.extend(
                    world
                        .founding(id)
                        .each()
                        .map(|at| Action::TakeIn { at, id }),
                );
            }
        }
    }

    /// The remaining steps of a founding that another process began.
    fn next_of(&self, world: &World, id: u8) -> Option<Action> {
        let founding = world.founding(id);
        let mut members = founding.each();
        let Some(at) = members.find(|at| world.server(*at).pointer != Some(id)) else {
            return Some(Action::Help(id));
        };
        let server = world.server(at);
        let joins = server.pointer.is_none() && founding.knows_life(at, server.life);
        joins.then_some(Action::SendJoin { at, id })
    }

    /// Whether a member has a copy of the record.
    fn is_in_use(&self, world: &World, id: u8) -> bool {
        let armed = world.servers.iter().any(|server| server.armed == Some(id));
        armed && self.holds(Rule::PointersOfTheArmedStay)
    }

    pub(super) fn help(&self, world: &mut World, id: u8) {
        world.bring_into_use(id);
        world.happened = Some(Event::Helped);
    }

    /// The home's record in creation is gone, and its pointer.
    pub(super) fn void(&self, world: &mut World, id: u8) {
        let home = world.founding(id).home;
        let server = world.server_mut(home);
        server.record = None;
        server.pointer = server.pointer.filter(|pointer| *pointer != id);
        world.happened = Some(Event::Voided);
    }

    /// The record is put back at its home from a copy, if every member is its own or free.
    pub(super) fn recover(&self, world: &mut World, id: u8) {
        let founding = world.founding(id);
        let free = |at: u8| world.server(at).pointer.is_none_or(|other| other == id);
        let mut members = founding.each();
        if world.server(founding.home).record.is_some() || !members.all(free) {
            return;
        }
        world.bring_into_use(id);
        for at in founding.each() {
            world.take_in(at, id);
        }
    }

    /// An active topology takes a member in again that came back empty.
    pub(super) fn take_in(&self, world: &mut World, at: u8, id: u8) {
        let server = world.server(at);
        if server.pointer.is_none() && server.armed.is_none() {
            world.take_in(at, id);
        }
    }

    pub(super) fn enabled_restarts(&self, world: &World, actions: &mut Vec<Action>) {
        if world.restarts > 0 {
            actions.extend((0..SERVERS as u8).map(Action::Restart));
        }
    }
}

impl World {
    fn take_in(&mut self, at: u8, id: u8) {
        let life = self.server(at).life;
        self.server_mut(at).pointer = Some(id);
        self.foundings[usize::from(id)].lives[usize::from(at)] = life;
    }
}
