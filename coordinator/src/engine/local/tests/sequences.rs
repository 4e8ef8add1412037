//! Any events on a local queue, in any order.

use std::time::Duration;

use proptest::prelude::*;

use super::{super::Handoff, world::World};

#[derive(Clone, Debug)]
enum Event {
    Join { terms: u8, once: bool },
    Leave(usize),
    Granted { tokens: u32, contended: bool },
    Refused,
    RefusedForGood,
    Released,
    Yielded,
    Over,
    Late(usize),
    Contended,
    Tired,
    Pass(u64),
    CannotBegin,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        // Mostly equal terms: otherwise hand-offs are rare.
        8 => (prop::sample::select(vec![0_u8, 0, 0, 0, 1, 2]), prop::bool::weighted(0.2))
            .prop_map(|(terms, once)| Event::Join { terms, once }),
        2 => any::<usize>().prop_map(Event::Leave),
        8 => (1..8_u32, prop::bool::weighted(0.2))
            .prop_map(|(tokens, contended)| Event::Granted { tokens, contended }),
        1 => Just(Event::Refused),
        1 => Just(Event::RefusedForGood),
        8 => Just(Event::Released),
        4 => Just(Event::Yielded),
        1 => Just(Event::Over),
        1 => any::<usize>().prop_map(Event::Late),
        2 => Just(Event::Contended),
        1 => Just(Event::Tired),
        3 => (0..120_u64).prop_map(Event::Pass),
        1 => Just(Event::CannotBegin),
    ]
}

fn happen(world: &mut World, event: &Event) {
    match *event {
        Event::Join { terms, once } => drop(world.join(terms, once)),
        Event::Leave(at) => world.leave(at),
        Event::Granted { tokens, contended } => world.granted(tokens, contended),
        Event::Refused => world.refused(),
        Event::RefusedForGood => world.refused_for_good(),
        Event::Released => world.released(),
        Event::Yielded => world.yielded(),
        Event::Over => world.over(),
        Event::Late(at) => world.late(at),
        Event::Contended => world.contended(),
        Event::Tired => world.tired(),
        Event::Pass(ms) => world.pass(Duration::from_millis(ms)),
        Event::CannotBegin => world.unbegun = 1,
    }
}

proptest! {
    #[test]
    fn no_sequence_of_events_breaks_a_rule(
        max in prop::sample::select(vec![0_u32, 1, 3, 64]),
        length in prop::sample::select(vec![0_u64, 20, 1000]),
        lingers: bool,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let length = Duration::from_millis(length);
        let mut world = World::new(Handoff { max, length }, lingers);
        for event in &events {
            happen(&mut world, event);
        }
        // In the end, every waiter gets its turn.
        for _ in 0..2 * events.len() + 2 {
            world.granted(1, false);
            world.released();
            world.yielded();
        }
        prop_assert!(!world.asks() && world.holder.is_none());
    }
}
