//! What must hold, and what must have happened.

use stateright::Property;

use super::{Event, TopologyModel, World};

pub(super) const ONE_HOLDER: &str = "one holder";
pub(super) const TOKENS_RISE: &str = "tokens granted rise";
pub(super) const EPOCHS_MEAN_ONE_THING: &str =
    "what an epoch was allotted for is all it is used for";
pub(super) const ONE_RECORD: &str = "at most one record is in force";
pub(super) const COMES_TO_REST: &str = "the slot can always still come to rest";

pub(super) fn all() -> Vec<Property<TopologyModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world: &World| world.guards.len() <= 1),
        Property::always(TOKENS_RISE, |_, world: &World| {
            !world.ledger.granted_out_of_order
        }),
        Property::always(EPOCHS_MEAN_ONE_THING, |_, world: &World| {
            !world.ledger.epoch_with_two_meanings
        }),
        Property::always(ONE_RECORD, |model: &TopologyModel, world| {
            model.in_force(world).count() <= 1
        }),
        Property::always(COMES_TO_REST, |model: &TopologyModel, world| {
            model.comes_to_rest(world)
        }),
    ]
}

pub(super) fn reached(event: Event) -> Property<TopologyModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.ledger.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::Restored => sometimes!(Restored, "a record put back in force"),
        Event::RestoredInMove => sometimes!(RestoredInMove, "… with a move under way"),
        Event::RestoredElsewhere => sometimes!(RestoredElsewhere, "… at another home"),
        Event::Outrun => sometimes!(Outrun, "a recovery that gives way"),
        Event::GrantAfter => sometimes!(GrantAfter, "a grant after a recovery"),
        Event::FinishedAfter => sometimes!(FinishedAfter, "a move finished after a recovery"),
        Event::ArmedAnew => sometimes!(ArmedAnew, "a shard armed anew"),
        Event::ArmedAfresh => sometimes!(ArmedAfresh, "a shard armed after a flush"),
        Event::KeptThrough => sometimes!(KeptThrough, "a lock kept through a recovery"),
    }
}
