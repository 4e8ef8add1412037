//! What must hold, and what must have happened.

use stateright::Property;

use super::{Event, ReserveModel, World};

pub(super) const TOKENS_RISE: &str = "tokens of the lock rise";

pub(super) fn all() -> Vec<Property<ReserveModel>> {
    vec![Property::always(TOKENS_RISE, |_, world: &World| {
        !world.fell
    })]
}

pub(super) fn reached(event: Event) -> Property<ReserveModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::Recalled => sometimes!(Recalled, "a grant by what the session wrote"),
        Event::Presumed => sometimes!(Presumed, "a grant without a document"),
        Event::Stale => sometimes!(Stale, "a commit by another document"),
        Event::Late => sometimes!(Late, "a late commit"),
        Event::Swept => sometimes!(Swept, "a forgotten document"),
    }
}
