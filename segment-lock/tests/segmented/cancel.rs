//! A call dropped after any turn of the scheduler leaves nothing held.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use tokio::task::yield_now;

use super::{Lock, World};

/// Drops what `call` makes after 0, 1, 2, … turns, until it is done in its turns.
async fn dropped_after_every_turn<F: Future>(call: impl Fn(Lock) -> F) {
    for turns in 0.. {
        let world = World::of(3).await;
        let (lock, _) = world.gated();
        let done = {
            let mut call = pin!(call(lock.clone()));
            let mut done = None;
            for _ in 0..turns {
                let polled = poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
                if let Poll::Ready(output) = polled.await {
                    done = Some(output);
                    break;
                }
                yield_now().await;
            }
            done.is_some()
        };
        assert_eq!(world.locks.held(), 0, "after {turns} turns");
        assert!(lock.contention().iter().all(|its| its.here == 0));
        drop(lock.all().try_acquire().await.unwrap());
        if done {
            assert!(turns >= 3, "done in {turns} turns");
            return;
        }
    }
}

#[tokio::test]
async fn any_leaves_nothing() {
    dropped_after_every_turn(async |lock| drop(lock.any().acquire().await.unwrap())).await;
}

#[tokio::test]
async fn a_given_one_leaves_nothing() {
    dropped_after_every_turn(async |lock| drop(lock.at(1).acquire().await.unwrap())).await;
}

#[tokio::test]
async fn all_leaves_nothing() {
    dropped_after_every_turn(async |lock| drop(lock.all().acquire().await.unwrap())).await;
}

#[tokio::test]
async fn a_release_of_all_leaves_nothing() {
    dropped_after_every_turn(async |lock| {
        let all = lock.all().acquire().await.unwrap();
        all.release().await
    })
    .await;
}

#[tokio::test]
async fn a_resize_leaves_nothing() {
    dropped_after_every_turn(async |lock| lock.resize(5).run().await.unwrap()).await;
}
