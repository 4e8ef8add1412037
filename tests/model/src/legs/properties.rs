//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, LegsModel, World,
    state::{Entry, FUNDS, LEGS},
};

pub(super) const CONSERVED: &str = "no coin is lost or minted";
pub(super) const ONCE: &str = "a leg is paid once, by one attempt";
pub(super) const ALL_OR_NOTHING: &str = "all legs are paid, or none";
pub(super) const ROOM: &str = "no account has more than it has room for";
pub(super) const FINISHES: &str = "one process alone finishes everything";

pub(super) fn all() -> Vec<Property<LegsModel>> {
    vec![
        Property::always(CONSERVED, |_, world: &World| {
            let received = world
                .destinations
                .iter()
                .map(|account| account.value)
                .sum::<u8>();
            let all = world.source.value + world.held() + received;
            i16::from(all) == i16::from(FUNDS) + i16::from(world.others)
        }),
        Property::always(ONCE, |_, world: &World| {
            let mut accounts = world.destinations.iter();
            accounts.all(|account| account.paid.iter().sum::<u8>() <= 1)
        }),
        Property::always(ALL_OR_NOTHING, |model: &LegsModel, world: &World| {
            let is_whole = match world.source.entry {
                Entry::Paid { refused, .. } => {
                    refused == 0 || refused.count_ones() as usize == LEGS
                }
                _ => true,
            };
            is_whole || model.config.losses > 0
        }),
        Property::always(ROOM, |_, world: &World| {
            world.destinations.iter().all(|account| account.room >= 0)
        }),
        Property::always(FINISHES, |model: &LegsModel, world| model.finishes(world)),
    ]
}

impl World {
    /// What the source has set aside, without what has arrived.
    fn held(&self) -> u8 {
        match self.source.entry {
            Entry::Held => FUNDS,
            Entry::Committed(attempt) => LEGS as u8 - self.arrived(attempt),
            Entry::Unseen | Entry::Paid { .. } | Entry::Over => 0,
        }
    }
}

pub(super) fn reached(event: Event) -> Property<LegsModel> {
    macro_rules! sometimes {
        ($event:ident, $name:literal) => {
            Property::sometimes($name, |_, world: &World| {
                world.happened == Some(Event::$event)
            })
        };
    }
    match event {
        Event::Paid => sometimes!(Paid, "all legs paid"),
        Event::TakenBack => sometimes!(TakenBack, "a promise taken back"),
        Event::Continued => sometimes!(Continued, "the decision of another carried out"),
        Event::KeptThoughClosed => sometimes!(KeptThoughClosed, "a promise kept though closed"),
        Event::CameBack => sometimes!(CameBack, "a leg that came back"),
        Event::ExpiredWhilePromised => {
            sometimes!(ExpiredWhilePromised, "expired while something was promised")
        }
    }
}
