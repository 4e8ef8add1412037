//! What must hold, and what must have happened.

use std::collections::BTreeSet;

use stateright::Property;

use super::{
    Event, Kind, SegmentsModel, World,
    ledger::{Fate, Told},
    state::Outcome,
};

pub(super) const CONSERVED: &str = "what is there, in flight and held is what was put in, less what was taken out and what was lost";
pub(super) const NEVER_NEGATIVE: &str = "nothing is negative";
pub(super) const ONE_EFFECT: &str = "an id has one effect";
pub(super) const ANSWERS_AGREE: &str = "the answers of an id agree";
pub(super) const ANSWERS_ARE_SO: &str = "an answer is what happened";
pub(super) const TRUE_ONCE: &str =
    "insufficient, and an exact balance, was so at some instant of its call";
pub(super) const TOO_OLD_IS_FINAL: &str = "an id that is too old has no effect any more";
pub(super) const CAN_FINISH: &str = "everything can always still be finished";

pub(super) fn all() -> Vec<Property<SegmentsModel>> {
    vec![
        Property::always(CONSERVED, is_conserved),
        Property::always(NEVER_NEGATIVE, |_, world: &World| {
            let mut segments = world.segments.iter();
            world.ledger.inside >= 0 && segments.all(|segment| segment.money.value >= 0)
        }),
        Property::always(ONE_EFFECT, |_, world: &World| {
            let mut fates = world.ledger.fates.iter();
            fates.all(|fate| {
                let effects = fate.effects.iter().sum::<u8>();
                fate.in_doubt || (effects <= 1 && fate.ends <= 1)
            })
        }),
        Property::always(ANSWERS_AGREE, |_, world: &World| {
            let mut fates = world.ledger.fates.iter();
            fates.all(|fate| fate.in_doubt || agree(&fate.told))
        }),
        Property::always(ANSWERS_ARE_SO, |model: &SegmentsModel, world: &World| {
            let mut each = model.config.operations.iter().zip(&world.ledger.fates);
            each.all(|(operation, fate)| fate.in_doubt || are_so(operation.kind, fate))
        }),
        Property::always(TRUE_ONCE, |_, world: &World| !world.ledger.untrue),
        Property::always(TOO_OLD_IS_FINAL, |_, world: &World| !world.ledger.late),
        Property::always(CAN_FINISH, |model: &SegmentsModel, world| {
            model.can_finish(world)
        }),
    ]
}

/// No money is minted, and missing money was lost.
fn is_conserved(model: &SegmentsModel, world: &World) -> bool {
    let total = model.total(world, true);
    let most = world.ledger.inside;
    (most - world.ledger.lost..=most).contains(&total)
}

impl SegmentsModel {
    /// All money, with or without the money in flight.
    pub(super) fn total(&self, world: &World, in_flight: bool) -> i8 {
        let there = world.each().filter(|(_, segment)| segment.is_there());
        let each = there.map(|(index, segment)| (index, &segment.money));
        self.sum(each, in_flight) + held(self, world)
    }
}

/// The money taken from a source and not credited yet, or reserved.
fn held(model: &SegmentsModel, world: &World) -> i8 {
    let mut held = 0;
    for segment in &world.segments {
        for (operation, entry) in (0..).zip(&segment.entries) {
            let Some(entry) = entry.filter(|entry| entry.outcome == Outcome::Held) else {
                continue;
            };
            let fate = &world.ledger.fates[usize::from(operation)];
            let kind = model.config.operations[usize::from(operation)].kind;
            if kind == Kind::Reserve || fate.ends == 0 {
                held += model.amount_of(operation, entry);
            }
        }
    }
    held
}

/// The first answer is the only one, and so is a reservation's end; another content never was
/// the first.
fn agree(told: &BTreeSet<Told>) -> bool {
    let first = |told: &&Told| matches!(told, Told::Ok(_) | Told::Insufficient(_) | Told::Refused);
    let ends = |told: &&Told| matches!(told, Told::Confirmed | Told::Cancelled);
    let conflicts = (0..2).any(|content| {
        let own = [Told::Ok(content), Told::Insufficient(content)];
        told.contains(&Told::Conflict(content)) && own.iter().any(|own| told.contains(own))
    });
    told.iter().filter(first).count() <= 1 && told.iter().filter(ends).count() <= 1 && !conflicts
}

fn are_so(kind: Kind, fate: &Fate) -> bool {
    let effects: u8 = fate.effects.iter().sum();
    fate.told.iter().all(|told| match (told, kind) {
        (Told::Ok(_), Kind::Transfer { .. }) => effects > 0 && fate.ends == 1,
        (Told::Refused, Kind::Transfer { .. }) => fate.ends == 0,
        (Told::Ok(content), _) => fate.effects[usize::from(*content)] > 0,
        (Told::Insufficient(_), _) => effects == 0,
        (Told::Confirmed, _) => fate.ends > 0,
        (Told::Cancelled, Kind::Reserve) => fate.ends == 0,
        _ => true,
    })
}

pub(super) fn reached(event: Event) -> Property<SegmentsModel> {
    match event {
        Event::AllOk => Property::sometimes("every operation ok", |_, world: &World| {
            let ok = |told: &Told| matches!(told, Told::Ok(_) | Told::Exact);
            world
                .ledger
                .fates
                .iter()
                .all(|fate| fate.told.iter().any(ok))
        }),
        Event::Insufficient => Property::sometimes("insufficient", |_, world: &World| {
            is_told(world, |told| matches!(told, Told::Insufficient(_)))
        }),
        Event::InFlight => {
            Property::sometimes("money in flight", |model: &SegmentsModel, world: &World| {
                let at_segments: i8 = world
                    .segments
                    .iter()
                    .map(|segment| segment.money.value)
                    .sum();
                at_segments + held(model, world) < world.ledger.inside
            })
        }
        Event::TooOld => Property::sometimes("an id is too old", |_, world: &World| {
            is_told(world, |told| *told == Told::TooOld)
        }),
        Event::Conflict => Property::sometimes("an id in conflict", |_, world: &World| {
            is_told(world, |told| matches!(told, Told::Conflict(_)))
        }),
        Event::NewHome => Property::sometimes(
            "an effect at a new segment",
            |model: &SegmentsModel, world: &World| {
                let new = (model.parts(world)).filter(|(index, _)| *index >= model.config.at_first);
                let mut entries = new.flat_map(|(_, segment)| segment.entries).flatten();
                entries.any(|entry| entry.outcome == Outcome::Done)
            },
        ),
        Event::Refused => Property::sometimes("a transfer refused", |_, world: &World| {
            is_told(world, |told| *told == Told::Refused)
        }),
        Event::Expired => Property::sometimes("a reservation expired", |_, world: &World| {
            let mut entries = (world.segments.iter())
                .flat_map(|segment| segment.entries)
                .flatten();
            entries.any(|entry| entry.outcome == Outcome::Expired)
        }),
        Event::Confirmed => Property::sometimes("a reservation confirmed", |_, world: &World| {
            is_told(world, |told| *told == Told::Confirmed)
        }),
        Event::Accepted => Property::sometimes("a segment that went on", |_, world: &World| {
            world
                .segments
                .iter()
                .any(|segment| segment.money.losses > 0)
        }),
        Event::Doubtful => Property::sometimes("a segment in doubt", |_, world: &World| {
            world.segments.iter().any(|segment| segment.doubtful)
        }),
    }
}

fn is_told(world: &World, which: impl Fn(&Told) -> bool) -> bool {
    world
        .ledger
        .fates
        .iter()
        .any(|fate| fate.told.iter().any(&which))
}
