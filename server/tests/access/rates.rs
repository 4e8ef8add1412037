//! A caller that makes too many calls keeps its locks.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use ringfence_api::{Error, Reason};
use ringfence_test_support::eventually;
use tokio::{task::JoinSet, time::sleep};
use tonic::{Code, Status};

use crate::scene::{Scene, acquire, ask, release, renew};

fn limited(refused: &Status) -> Duration {
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let error = Error::from_status(refused);
    assert_eq!(error.reason, Reason::RateLimited);
    assert!(error.is_retryable);
    error.retry_after.unwrap()
}

#[tokio::test]
async fn calls_beyond_the_rate_are_refused_but_renewals_are_not() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    let mut free = (0..100).map(|index| format!("free/{index}"));
    let refused = loop {
        let key = free.next().expect("a hundred calls are beyond the rate");
        if let Err(refused) = acquire(&mut locks, ask(&key, 1000, Some(0))).await {
            break refused;
        }
    };
    let wait = limited(&refused);
    assert!(wait <= Duration::from_millis(500), "{wait:?}");
    let before = scene.script_calls().await;
    for _ in 0..100 {
        renew(&mut locks, &held.handle).await.unwrap();
    }
    // Another call of the same caller, on another connection.
    let mut other = scene.locks().await;
    for _ in 0..3 {
        let again = acquire(&mut other, ask("free", 1000, Some(0))).await;
        if let Err(refused) = again {
            limited(&refused);
            break;
        }
    }
    assert!(scene.script_calls().await <= before + 4);
    eventually("its turn comes", || {
        let mut other = other.clone();
        async move {
            acquire(&mut other, ask("later", 1000, Some(0)))
                .await
                .is_ok()
        }
    })
    .await;
    release(&mut locks, &held.handle).await.unwrap();
}

#[tokio::test]
async fn waiting_calls_leave_room_for_renewals_on_their_connection() {
    let scene = Scene::set_with(|config| config.limits.streams = 2).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..2 {
        let mut queue = locks.clone();
        waits.spawn(async move {
            // A probe below may have the place.
            while let Err(refused) = acquire(&mut queue, ask("key", 1000, None)).await {
                sleep(limited(&refused)).await;
            }
        });
    }
    let free = AtomicU32::new(0);
    eventually("both wait", || {
        let mut locks = locks.clone();
        let key = format!("free/{}", free.fetch_add(1, Ordering::Relaxed));
        async move {
            let asked = acquire(&mut locks, ask(&key, 1000, Some(0))).await;
            asked.is_err_and(|refused| !limited(&refused).is_zero())
        }
    })
    .await;
    renew(&mut locks, &held.handle).await.unwrap();
    // Another connection has places of its own.
    let mut other = scene.locks().await;
    acquire(&mut other, ask("free", 1000, None)).await.unwrap();
    release(&mut locks, &held.handle).await.unwrap();
    while let Some(waited) = waits.join_next().await {
        waited.unwrap();
    }
}
