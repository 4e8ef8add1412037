//! A process that was paused until another holder had its lock does no harm. These tests use no
//! clock.

use ringfence_segment_lock::lock::SegmentedLockError::Lost;
use tokio::join;

use super::World;

/// It is paused with its write on the way; then another has all.
#[tokio::test]
async fn a_resizer_that_lost_its_lock_before_it_wrote_makes_nothing() {
    let world = World::of(2).await;
    let (zombie, gate) = world.gated();
    gate.swaps.close_after(0);
    let resize = zombie.resize(4);
    let resized = resize.run();
    let all = async {
        gate.swaps.arrived().await;
        world.locks.expire(0);
        let all = world.process(0).all().acquire().await.unwrap();
        gate.swaps.open();
        all
    };
    let (resized, all) = join!(resized, all);
    assert!(
        matches!(resized, Err(Lost { segment: 0 })),
        "{resized:?} while {all:?}"
    );
    assert!(all.is_held());
    assert_eq!(world.made().await, 2);
}

/// It is paused between its lock and its reading, so that it reads what the other confirmed.
#[tokio::test]
async fn a_resizer_that_lost_its_lock_before_it_read_makes_nothing() {
    let world = World::of(2).await;
    let (zombie, gate) = world.gated();
    gate.reads.close_after(1);
    let resize = zombie.resize(4);
    let resized = resize.run();
    let all = async {
        gate.reads.arrived().await;
        world.locks.expire(0);
        let all = world.process(0).all().acquire().await.unwrap();
        gate.reads.open();
        all
    };
    let (resized, all) = join!(resized, all);
    assert!(
        matches!(resized, Err(Lost { segment: 0 })),
        "{resized:?} while {all:?}"
    );
    assert!(all.is_held());
    assert_eq!(world.made().await, 2);
}

/// The one that lost its lock writes after the other has read, and before it confirms.
#[tokio::test]
async fn all_takes_what_a_resizer_made_while_it_confirmed() {
    let world = World::of(2).await;
    let ((zombie, gate), (other, others_gate)) = (world.gated(), world.gated());
    gate.swaps.close_after(0);
    others_gate.swaps.close_after(0);
    let resize = zombie.resize(4);
    let resized = async {
        let resized = resize.run().await;
        others_gate.swaps.open();
        resized
    };
    let (all, paced) = (other.all(), async {
        others_gate.swaps.arrived().await;
        gate.swaps.open();
    });
    let taken = async {
        gate.swaps.arrived().await;
        world.locks.expire(0);
        all.acquire().await.unwrap()
    };
    let (resized, taken, ()) = join!(resized, taken, paced);
    resized.unwrap();
    assert_eq!(taken.segments().len(), 4);
    assert_eq!(world.made().await, 4);
}

/// It waits for the second while the first is taken from it.
#[tokio::test]
async fn all_that_lost_one_while_it_took_the_rest_is_told() {
    let world = World::of(2).await;
    let lock = world.process(0);
    let second = world.process(0).at(1).acquire().await.unwrap();
    let (all, paced) = (lock.all(), async {
        while world.locks.held() < 2 {
            tokio::task::yield_now().await;
        }
        world.locks.expire(0);
        drop(second);
    });
    let (taken, ()) = join!(all.acquire(), paced);
    assert!(matches!(taken, Err(Lost { segment: 0 })), "{taken:?}");
    assert_eq!(world.locks.held(), 0);
}

/// What it confirms late must not make the record forget a later holder.
#[tokio::test]
async fn all_that_lost_its_lock_before_it_read_confirms_nothing() {
    let world = World::of(1).await;
    let (zombie, gate) = world.gated();
    gate.reads.close_after(1);
    let late = zombie.all();
    let all = async {
        gate.reads.arrived().await;
        world.locks.expire(0);
        let all = world.process(0).all().acquire().await.unwrap();
        let confirmed = world.process(0).split().await.unwrap();
        gate.reads.open();
        (all, confirmed)
    };
    let (late, (all, confirmed)) = join!(late.acquire(), all);
    assert!(matches!(late, Err(Lost { segment: 0 })), "{late:?}");
    assert!(all.is_held());
    assert_eq!(world.process(0).split().await.unwrap(), confirmed);
}
