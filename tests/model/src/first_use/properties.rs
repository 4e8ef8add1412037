//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, FirstUseModel, World,
    state::{SERVERS, Status},
};

pub(super) const ONE_IN_USE: &str = "no server belongs to two topologies in use";
pub(super) const ARMED_BY_ITS_OWN: &str = "no server of a topology in use is armed by another";
pub(super) const COMES_INTO_USE: &str = "a topology can always still come into use";

pub(super) fn all() -> Vec<Property<FirstUseModel>> {
    vec![
        Property::always(ONE_IN_USE, |_, world: &World| {
            let mut servers = 0..SERVERS as u8;
            servers.all(|at| owners(world, at).count() <= 1)
        }),
        Property::always(ARMED_BY_ITS_OWN, |_, world: &World| {
            let mut servers = 0..SERVERS as u8;
            servers.all(|at| {
                let armed = world.server(at).armed;
                armed.is_none() || owners(world, at).all(|id| armed == Some(id))
            })
        }),
        Property::always(COMES_INTO_USE, |model: &FirstUseModel, world| {
            model.comes_into_use(world)
        }),
    ]
}

/// The topologies in use that a server is a member of.
fn owners(world: &World, at: u8) -> impl Iterator<Item = u8> {
    let records = world.servers.iter().filter_map(|server| server.record);
    let active = records.filter(|record| record.status == Status::Active);
    let its = active.filter(move |record| world.founding(record.founding).has(at));
    its.map(|record| record.founding)
}

pub(super) fn reached(event: Event) -> Property<FirstUseModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::Activated => sometimes!(Activated, "a founding brought into use"),
        Event::Helped => sometimes!(Helped, "another's founding brought into use"),
        Event::Voided => sometimes!(Voided, "a founding undone"),
    }
}
