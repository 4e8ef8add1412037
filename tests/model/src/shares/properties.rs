//! The properties that must hold, and the events that must have happened.

use stateright::Property;

use super::{Event, SharesModel, World, state::Process};

pub(super) const WITHIN_CAPACITY: &str = "holders never have more shares than there are";
pub(super) const WRITER_ALONE: &str = "a writer holds alone";
pub(super) const GRANTED_WITH_ROOM: &str = "a grant leaves holders within its own capacity";
pub(super) const NEWER_THAN_WRITERS: &str = "no holder is older than a writer's grant";
pub(super) const TOKENS_RISE: &str = "tokens granted rise";
pub(super) const FIRST_COME: &str = "first come, first served";
pub(super) const NO_IDLE_ROOM: &str = "a script that makes room grants to the head if it fits";
pub(super) const NO_MORE_THAN_HELD: &str =
    "a holder's entry has no more shares than it asked for last";
pub(super) const COMES_TO_REST: &str = "the move can be finished, and every waiter granted";
pub(super) const HEALTHY_GUARD: &str = "a healthy guard is not lost";

pub(super) fn safety() -> Vec<Property<SharesModel>> {
    vec![
        Property::always(WITHIN_CAPACITY, |model: &SharesModel, world: &World| {
            let capacity = model.config.capacities.iter().max();
            let held = world.guards().map(|guard| guard.shares).sum::<u8>();
            capacity.is_some_and(|capacity| held <= *capacity)
        }),
        Property::always(WRITER_ALONE, |_, world: &World| {
            let written = world.guards().any(|guard| guard.writes);
            !written || world.guards().count() == 1
        }),
        Property::always(GRANTED_WITH_ROOM, |_, world: &World| {
            !world.ledger.granted_without_room
        }),
        Property::always(NEWER_THAN_WRITERS, |_, world: &World| {
            let newest = world.ledger.newest_writer;
            world.guards().all(|guard| guard.token >= newest)
        }),
        Property::always(TOKENS_RISE, |_, world: &World| {
            !world.ledger.granted_out_of_order
        }),
        Property::always(FIRST_COME, |_, world: &World| !world.ledger.overtaken),
        Property::always(NO_IDLE_ROOM, |_, world: &World| {
            !world.ledger.room_left_idle
        }),
        Property::always(HEALTHY_GUARD, |_, world: &World| {
            !world.ledger.healthy_guard_lost
        }),
        Property::always(NO_MORE_THAN_HELD, |_, world: &World| {
            world
                .processes
                .iter()
                .all(|process| has_no_more(world, process))
        }),
        Property::always(COMES_TO_REST, |model: &SharesModel, world: &World| {
            !model.config.comes_to_rest || model.comes_to_rest(world)
        }),
    ]
}

/// Once nothing of it is under way; after a restart its next renewal says so again.
fn has_no_more(world: &World, process: &Process) -> bool {
    let nonce = process.nonce;
    let Some(guard) = process.guard else {
        return true;
    };
    let shard = &world.shards[usize::from(guard.shard)];
    let entry = shard.memory.share(nonce);
    let more = entry.is_some_and(|entry| entry.shares > guard.shares);
    !more || shard.life > 0 || world.network.is_asked(nonce, guard.shard)
}

pub(super) fn reached(event: Event) -> Property<SharesModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.ledger.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::HeldTogether => sometimes!(HeldTogether, "two hold at once"),
        Event::WriterAfterReader => sometimes!(WriterAfterReader, "a writer after a reader"),
        Event::TurnTaken => sometimes!(TurnTaken, "a turn taken"),
        Event::TwoTurns => sometimes!(TwoTurns, "two turns from one script"),
        Event::PreferredGrant => sometimes!(PreferredGrant, "a preferred grant before a ticket"),
        Event::ReaderJoined => sometimes!(ReaderJoined, "a reader comes to another"),
        Event::HandedOn => sometimes!(HandedOn, "a writer after another of its process"),
        Event::GrantAfterDowngrade => {
            sometimes!(GrantAfterDowngrade, "a grant beside a downgraded writer")
        }
        Event::SmallerCapacity => sometimes!(SmallerCapacity, "a grant by the smaller capacity"),
        Event::Adopted => sometimes!(Adopted, "a holder moves itself"),
        Event::GrantBesideLeft => sometimes!(GrantBesideLeft, "a grant beside shares left at A"),
        Event::FinishedUnderHolder => {
            sometimes!(FinishedUnderHolder, "a move finished under a holder")
        }
        Event::Reclaimed => sometimes!(Reclaimed, "put back in grace"),
        Event::ReclaimedWithoutRoom => {
            sometimes!(ReclaimedWithoutRoom, "put back in grace without room")
        }
    }
}
