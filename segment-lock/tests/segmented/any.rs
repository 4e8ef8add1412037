//! A free one, whichever it is.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use tokio::time::{advance, sleep};

use super::{SECOND, World};

#[tokio::test(start_paused = true)]
async fn a_process_goes_back_where_it_was() {
    let world = World::of(8).await;
    let lock = world.process(5);
    for _ in 0..8 {
        assert_eq!(lock.any().acquire().await.unwrap().segment(), 5);
    }
    let other = world.process(5).any().acquire().await.unwrap();
    for _ in 0..8 {
        assert_eq!(lock.any().acquire().await.unwrap().segment(), 6);
    }
    assert_eq!(other.segment(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_only_free_one_is_found() {
    let world = World::of(16).await;
    let (lock, other) = (world.process(3), world.process(0));
    let mut held = Vec::new();
    for segment in (0..16).filter(|segment| *segment != 2) {
        held.push(other.at(segment).acquire().await.unwrap());
    }
    assert_eq!(lock.any().try_acquire().await.unwrap().segment(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_tasks_use_all_of_them_and_it_can_be_seen() {
    let world = World::of(4).await;
    let lock = world.process(0);
    let one = async || {
        let guard = lock.any().acquire().await.unwrap();
        sleep(Duration::from_millis(10)).await;
        guard.release().await;
    };
    join_all((0..64).map(|_| one())).await;
    let met = lock.contention();
    assert_eq!(met.len(), 4);
    for its in met {
        assert_eq!((its.here, its.acquisitions, its.waits), (0, 16, 15));
        // 1 + 2 + … + 15 times as long as each is held.
        assert!(its.waited >= Duration::from_millis(1200), "{its:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn processes_that_left_are_not_counted() {
    let world = World::of(2).await;
    let lock = world.process(0);
    let held = [
        lock.any().acquire().await.unwrap(),
        lock.any().acquire().await.unwrap(),
    ];
    assert!(lock.any().wait(SECOND).acquire().await.is_err());
    lock.any().try_acquire().await.unwrap_err();
    let here = || lock.contention().iter().map(|its| its.here).sum::<u32>();
    assert_eq!(here(), 2);
    drop(held);
    assert_eq!(here(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shard_in_trouble_is_kept_away_from() {
    let world = World::of(4).await;
    let lock = world.process(1);
    world.locks.trouble(1, true);
    let taken = join_all((0..3).map(async |_| lock.any().acquire().await.unwrap())).await;
    let segments: BTreeSet<u32> = taken.iter().map(|guard| guard.segment()).collect();
    assert_eq!(segments, BTreeSet::from([0, 2, 3]));
    drop(taken);

    let before = world.locks.requests();
    drop(lock.any().acquire().await.unwrap());
    assert_eq!(
        world.locks.requests() - before,
        1,
        "it is not asked again at once"
    );
    world.locks.trouble(1, false);
    advance(2 * SECOND).await;
    let all = join_all((0..3).map(async |_| lock.any().acquire().await.unwrap())).await;
    assert!(all.iter().any(|guard| guard.segment() == 1));
}

#[tokio::test(start_paused = true)]
async fn trouble_everywhere_is_told() {
    let world = World::of(2).await;
    let lock = world.process(0);
    (0..2).for_each(|segment| world.locks.trouble(segment, true));
    let error = lock.any().try_acquire().await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.to_string(), "segment 1: in trouble");
}
