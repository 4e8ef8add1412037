//! What must hold, and what must have happened.

use stateright::Property;

use super::{Event, WitnessedModel, World, state::PROCESSES};

pub(super) const ONE_HOLDER: &str = "the lock has one holder";
const NOT_AHEAD: &str = "the store's clock is not ahead of time";

pub(super) fn all() -> Vec<Property<WitnessedModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world: &World| {
            let mut holders = (0..PROCESSES as u8).filter(|process| world.believes(*process));
            holders.next().is_none() || holders.next().is_none()
        }),
        Property::always(NOT_AHEAD, |_, world: &World| world.clock.shows <= world.now),
    ]
}

pub(super) fn reached(event: Event) -> Property<WitnessedModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::TakenOver => sometimes!(TakenOver, "a lock taken over"),
        Event::Extended => sometimes!(Extended, "a lease extended"),
        Event::Claimed => sometimes!(Claimed, "a claim heard in time"),
        Event::Recalled => sometimes!(Recalled, "a grant by an earlier clock"),
        Event::TickRefused => sometimes!(TickRefused, "a tick refused"),
    }
}
