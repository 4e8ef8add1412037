//! How many there are changes meanwhile.

use std::collections::BTreeSet;

use ringfence_segment_lock::lock::SegmentedLockError::{NoSegment, NotAcquired};
use tokio::{join, time::sleep};

use super::{SECOND, World};

#[tokio::test(start_paused = true)]
async fn more_are_not_made_while_somebody_has_all() {
    let world = World::of(2).await;
    let all = world.process(0).all().acquire().await.unwrap();
    let resize = world.process(0);
    let waited = resize.resize(4).wait(SECOND).run().await.unwrap_err();
    assert!(
        matches!(waited, NotAcquired { segment: 0, .. }),
        "{waited:?}"
    );
    assert_eq!(world.made().await, 2);
    drop(all);
    resize.resize(4).run().await.unwrap();
    assert_eq!(world.made().await, 4);
}

#[tokio::test(start_paused = true)]
async fn all_takes_what_was_made_since_its_process_knew() {
    let world = World::of(2).await;
    let old = world.process(0);
    assert_eq!(old.split().await.unwrap().made(), 2);
    world.process(0).resize(4).run().await.unwrap();
    let all = old.all().acquire().await.unwrap();
    assert_eq!(all.segments().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn all_takes_what_is_used_no_more() {
    let world = World::of(4).await;
    let old = world.process(3).at(3).acquire().await.unwrap();
    let lock = world.process(0);
    lock.resize(2).run().await.unwrap();
    let all = lock.all().wait(SECOND).acquire().await.unwrap_err();
    assert!(matches!(all, NotAcquired { segment: 3, .. }), "{all:?}");
    drop(old);
    let all = lock.all().acquire().await.unwrap();
    assert_eq!(all.segments().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn any_chooses_among_those_in_use_after_a_second() {
    let world = World::of(4).await;
    let (lock, other) = (world.process(3), world.process(0));
    assert_eq!(lock.any().acquire().await.unwrap().segment(), 3);
    other.resize(2).run().await.unwrap();
    sleep(SECOND).await;
    let taken = [(); 2].map(|()| lock.any());
    let (one, two) = join!(taken[0].acquire(), taken[1].acquire());
    let segments = [one.unwrap(), two.unwrap()].map(|guard| guard.segment());
    assert_eq!(BTreeSet::from(segments), BTreeSet::from([0, 1]));

    other.resize(8).run().await.unwrap();
    sleep(SECOND).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(lock.any().try_acquire().await.unwrap());
    }
    lock.any().try_acquire().await.unwrap_err();
}

/// It was not there when the process read the record last.
#[tokio::test(start_paused = true)]
async fn one_that_was_just_made_can_be_had() {
    let world = World::of(2).await;
    let lock = world.process(0);
    let missing = lock.at(3).try_acquire().await.unwrap_err();
    assert!(
        matches!(
            missing,
            NoSegment {
                segment: 3,
                made: 2
            }
        ),
        "{missing:?}"
    );
    world.process(0).resize(4).run().await.unwrap();
    assert_eq!(lock.at(3).try_acquire().await.unwrap().segment(), 3);
}

#[tokio::test(start_paused = true)]
async fn fewer_in_use_while_all_is_confirmed_does_not_upset_it() {
    let world = World::of(4).await;
    let (lock, gate) = world.gated();
    gate.swaps.close_after(0);
    let all = lock.all();
    let shrunk = async {
        gate.swaps.arrived().await;
        world.process(0).resize(2).run().await.unwrap();
        gate.swaps.open();
    };
    let (all, ()) = join!(all.acquire(), shrunk);
    assert_eq!(all.unwrap().segments().len(), 4);
    let split = world.process(0).split().await.unwrap();
    assert_eq!((split.used(), split.made()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn two_resizers_at_once_come_one_after_the_other() {
    let world = World::of(1).await;
    let (a, b) = (world.process(0), world.process(0));
    let (to_eight, to_three) = (a.resize(8), b.resize(3));
    let (eight, three) = join!(to_eight.run(), to_three.run());
    eight.unwrap();
    three.unwrap();
    let split = world.process(0).split().await.unwrap();
    assert!([3, 8].contains(&split.used()), "{split:?}");
    assert!([3, 8].contains(&split.made()), "{split:?}");
    assert_eq!(world.locks.held(), 0);
}
