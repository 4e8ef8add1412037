//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, SlotModel, World,
    state::{Guard, Mode},
};

pub(super) const ONE_HOLDER: &str = "one holder";
pub(super) const HOLDER_IS_NEWEST: &str = "a holder has the newest token";
pub(super) const TOKENS_RISE: &str = "tokens granted rise";
pub(super) const HEALTHY_GUARD: &str = "a healthy guard is not lost";
pub(super) const RELEASED_STAYS_SO: &str = "what a shard released is not put back there";
pub(super) const OWNER_IS_OPEN: &str = "a slot that does not move is open at its owner";

pub(super) fn safety() -> Vec<Property<SlotModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world| holders(world).count() <= 1),
        Property::always(HOLDER_IS_NEWEST, |_, world: &World| {
            holders(world).all(|guard| guard.token == world.ledger.newest)
        }),
        Property::always(TOKENS_RISE, |_, world: &World| {
            !world.ledger.granted_out_of_order
        }),
        Property::always(HEALTHY_GUARD, |_, world: &World| {
            !world.ledger.healthy_guard_lost
        }),
        Property::always(RELEASED_STAYS_SO, |_, world: &World| {
            !world.ledger.put_back_after_release
        }),
        Property::always(OWNER_IS_OPEN, |_, world| is_owner_open(world)),
    ]
}

/// The processes that believe they hold the lock.
fn holders(world: &World) -> impl Iterator<Item = Guard> {
    world.processes.iter().filter_map(|process| process.guard)
}

/// Once it is armed; a removed shard's slot is, once it is forced.
fn is_owner_open(world: &World) -> bool {
    let topology = &world.topology;
    let moves = topology.under_way.is_some() || topology.removed.is_some();
    let slot = world.shards[usize::from(topology.owner)].slot;
    moves || slot.is_none_or(|slot| slot.mode == Mode::Open)
}

pub(super) fn reached(event: Event) -> Property<SlotModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.ledger.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::Adopted => sometimes!(Adopted, "a holder moves itself"),
        Event::ProvenGrant => sometimes!(ProvenGrant, "a grant by proof"),
        Event::ListedGrant => sometimes!(ListedGrant, "a grant by the list"),
        Event::GrantAfterMove => sometimes!(GrantAfterMove, "a grant after the move"),
        Event::FinishedUnderHolder => {
            sometimes!(FinishedUnderHolder, "a move finished under a holder")
        }
        Event::TakenBackUnderHolder => {
            sometimes!(TakenBackUnderHolder, "a move taken back under a holder")
        }
        Event::FinishedAgainUnderHolder => {
            sometimes!(FinishedAgainUnderHolder, "a second move under a holder")
        }
        Event::Reclaimed => sometimes!(Reclaimed, "put back in grace"),
        Event::ReclaimedInMove => sometimes!(ReclaimedInMove, "put back in grace, in a move"),
        Event::ReclaimedElsewhere => {
            sometimes!(ReclaimedElsewhere, "put back elsewhere after a removal")
        }
        Event::GrantAfterRemoval => sometimes!(GrantAfterRemoval, "a grant after a removal"),
    }
}
