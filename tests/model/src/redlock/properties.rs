//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    RedlockModel, World,
    state::{Client, MAJORITY},
};

pub(super) const ONE_HOLDER: &str = "one holder";
pub(super) const FIRST_SERVED: &str = "first come, first served";
pub(super) const NOT_STUCK: &str = "a majority is enough to hold it";
pub(super) const TAKEN_FOR_GOOD: &str = "what was released by force is not held again";
pub(super) const TOKENS_RISE: &str = "tokens of holders rise";

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A second attempt got the lock.
    HeldAgain,
    /// A confirm made the majority.
    HeldAfterConfirm,
    /// … an adopt did.
    HeldAfterAdopt,
    /// A grant by the shard that the rank moved to made it.
    HeldAtNextShard,
    /// A successor had replaced the record of the released nonce.
    HeldAsSuccessor,
    /// The lock was held again after a removal.
    HeldAfterRemoval,
    /// A holder moved itself.
    Adopted,
    /// A holder wrote its record where there was none.
    Installed,
    /// A renewal put its record back in grace.
    Reclaimed,
    /// A lock was released by force.
    Taken,
    /// A record passed to a waiter.
    PassedOn,
    /// A client gave back a lead that was of no use to it.
    PassedOver,
}

pub(super) fn safety() -> Vec<Property<RedlockModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world: &World| {
            let holds = |client: &&Client| client.holds() && !client.taken;
            world.clients.iter().filter(holds).count() <= 1
        }),
        Property::always(TAKEN_FOR_GOOD, |_, world: &World| {
            let recorded = |client: &Client| {
                let records = world.shards.iter().filter_map(|shard| shard.record);
                records
                    .filter(|record| record.nonce == client.nonce)
                    .count()
            };
            let mut taken = world.clients.iter().filter(|client| client.taken);
            taken.all(|client| recorded(client) < MAJORITY)
        }),
        Property::always(TOKENS_RISE, |_, world: &World| !world.ledger.out_of_order),
        Property::always(FIRST_SERVED, |_, world: &World| {
            let mut clients = world.clients.iter();
            clients.all(|client| !(client.holds() && client.behind))
        }),
        Property::always(NOT_STUCK, |model: &RedlockModel, world: &World| {
            !model.is_stuck(world)
        }),
    ]
}

pub(super) fn reached(event: Event) -> Property<RedlockModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.ledger.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::HeldAgain => sometimes!(HeldAgain, "held again"),
        Event::HeldAfterConfirm => sometimes!(HeldAfterConfirm, "held after a confirm"),
        Event::HeldAfterAdopt => sometimes!(HeldAfterAdopt, "held after an adopt"),
        Event::HeldAtNextShard => sometimes!(HeldAtNextShard, "held at the next shard"),
        Event::HeldAsSuccessor => sometimes!(HeldAsSuccessor, "held as successor"),
        Event::HeldAfterRemoval => sometimes!(HeldAfterRemoval, "held after a removal"),
        Event::Adopted => sometimes!(Adopted, "a holder moves itself"),
        Event::Installed => sometimes!(Installed, "a record installed"),
        Event::Reclaimed => sometimes!(Reclaimed, "put back in grace"),
        Event::Taken => sometimes!(Taken, "released by force"),
        Event::PassedOn => sometimes!(PassedOn, "passed to a waiter"),
        Event::PassedOver => sometimes!(PassedOver, "a useless lead given back"),
    }
}
