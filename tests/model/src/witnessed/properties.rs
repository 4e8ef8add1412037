//! What must hold, and what must have happened.

use stateright::Property;

use super::{
    Event, Rule, WitnessedModel, World,
    actions::is_over,
    state::{LEASE, PROCESSES, Sight},
    store::seen,
};

pub(super) const ONE_HOLDER: &str = "the lock has one holder";
pub(super) const FREE_AGAIN: &str = "a lock that nobody holds can be granted again";

pub(super) fn all() -> Vec<Property<WitnessedModel>> {
    vec![
        Property::always(ONE_HOLDER, |_, world: &World| {
            let mut holders = (0..PROCESSES as u8).filter(|process| world.believes(*process));
            holders.next().is_none() || holders.next().is_none()
        }),
        Property::always(FREE_AGAIN, |model: &WitnessedModel, world| {
            model.is_free_again(world)
        }),
    ]
}

impl WitnessedModel {
    /// Whether a process that comes now gets a claim that nobody confirms, while all others go on with their beats: for
    /// other locks.
    fn is_free_again(&self, world: &World) -> bool {
        let Some(record) = world.record.filter(|record| record.is_claim) else {
            return true;
        };
        let mut sight = None;
        for later in 0..=2 * LEASE {
            let mut seen = seen(world, &record);
            seen.beat = Some(world.beaten + later);
            let new = Sight {
                seen,
                since: world.now + later,
            };
            let kept = self.sight(sight, new);
            if is_over(&kept, world.now + later) {
                // The commit of a take-over depends on the beat as it is by then.
                return self.holds(Rule::ClaimsGoByTheDocument) || kept.seen.beat == seen.beat;
            }
            sight = Some(kept);
        }
        false
    }
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
        Event::TakenOverUnbeaten => {
            sometimes!(TakenOverUnbeaten, "a lock without a beat taken over")
        }
        Event::Extended => sometimes!(Extended, "a lease extended by a beat"),
        Event::Claimed => sometimes!(Claimed, "a claim heard in time"),
        Event::TakeOverRefused => sometimes!(TakeOverRefused, "a take-over refused"),
    }
}
