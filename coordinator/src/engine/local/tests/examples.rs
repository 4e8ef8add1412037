//! Examples of a local queue's behaviour.

use std::time::Duration;

use super::{super::Handoff, world::World};
use crate::limits::TOKENS_MAX;

const FOR_EVER: Duration = Duration::from_secs(1 << 30);

fn world(max: u32) -> World {
    let length = FOR_EVER;
    World::new(Handoff { max, length }, false)
}

fn asked(world: &World) -> u32 {
    assert!(world.asks());
    world.stands.as_ref().expect("it asks").0.asked
}

/// Grants as many tokens as requested.
fn grant(world: &mut World, contended: bool) {
    world.granted(asked(world), contended);
}

/// Releases until another request is made; returns how often.
fn released_until_it_asks(world: &mut World) -> u32 {
    let mut released = 0;
    while !world.asks() {
        world.join(0, false);
        world.released();
        world.yielded();
        released += 1;
    }
    released
}

#[test]
fn a_block_used_up_without_contention_is_followed_by_one_of_four_times_as_many_up_to_the_most() {
    let mut world = world(64);
    world.join(0, false);
    assert_eq!(asked(&world), 1, "alone");
    for expected in [128, 512, 2_048, TOKENS_MAX, TOKENS_MAX] {
        grant(&mut world, false);
        released_until_it_asks(&mut world);
        assert_eq!(asked(&world), expected);
    }
}

#[test]
fn two_that_take_turns_hand_the_lock_to_each_other() {
    let mut world = world(64);
    world.join(0, false);
    grant(&mut world, false);
    world.join(0, false);
    world.released();
    assert_eq!(asked(&world), 128, "the first had but one token");
    grant(&mut world, false);
    assert_eq!(released_until_it_asks(&mut world), 128);
}

#[test]
fn no_block_grows_for_another_process_sake() {
    let mut world = world(4);
    world.join(0, false);
    world.join(0, false);
    for handed in [1, 5, 5, 5] {
        grant(&mut world, true);
        assert_eq!(released_until_it_asks(&mut world), handed);
        assert_eq!(asked(&world), 128);
    }
}

#[test]
fn contention_may_be_known_before_the_grant() {
    let mut world = world(2);
    world.join(0, false);
    world.granted(1, false);
    world.join(0, false);
    world.released();
    world.contended();
    // The answer was on its way before the other waiter came, and says that no process waits.
    grant(&mut world, false);
    assert_eq!(released_until_it_asks(&mut world), 3, "one, and two on");
}

#[test]
fn a_line_with_hands_off_asks_the_shard_for_everybody() {
    let mut world = world(0);
    for _ in 0..3 {
        world.join(0, false);
    }
    for _ in 0..3 {
        assert_eq!(asked(&world), 1);
        world.granted(1, false);
        world.released();
    }
    assert!(world.stands.is_none());
}

#[test]
fn a_process_asks_again_once_its_release_for_another_process_is_answered() {
    let mut world = world(0);
    world.join(0, false);
    grant(&mut world, true);
    world.join(0, false);
    world.released();
    assert!(!world.asks() && world.yielding.is_some());
    world.yielded();
    assert!(world.asks());
}
