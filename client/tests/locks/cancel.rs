//! Dropping a future at any await leaves nothing locked and loses nothing.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use ringfence_client::Client;

use crate::{SECOND, client_of, faults, freed_within, held, is_recorded};

/// Polls `future` at most `polls` times, then drops it. Its output, if it was done by then.
async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A shard that takes its time, so that a request has more than one await.
async fn slow_client() -> Client {
    let client = client_of(1).await;
    faults(&client).latency(Duration::from_millis(5)..Duration::from_millis(9));
    client
}

#[tokio::test(start_paused = true)]
async fn an_acquire_dropped_at_its_nth_poll_holds_nothing() {
    let client = slow_client().await;
    for polls in 1.. {
        let key = format!("key/{polls}");
        let done = dropped_after(polls, client.lock(&key).acquire()).await;
        let granted = done.is_some();
        drop(done);
        freed_within(&client, &key, SECOND).await;
        if granted {
            println!("acquire: dropped at polls 1 to {}", polls - 1);
            assert!(polls > 1, "never dropped under way");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_acquire_dropped_at_its_nth_poll_holds_nothing() {
    let client = slow_client().await;
    for polls in 1..=40 {
        let holder = held(&client, "key").await;
        let lock = client.lock("key");
        let (done, _) = tokio::join!(dropped_after(polls, lock.acquire()), async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            holder.release().await
        });
        drop(done);
        freed_within(&client, "key", SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_at_its_nth_poll_still_releases() {
    let client = slow_client().await;
    for polls in 0.. {
        let guard = held(&client, "key").await;
        let done = dropped_after(polls, guard.release()).await;
        freed_within(&client, "key", SECOND).await;
        if done.is_some() {
            println!("release: dropped at polls 0 to {}", polls - 1);
            assert!(polls > 1, "never dropped under way");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_danger_or_loss_has_no_effect() {
    let client = slow_client().await;
    let guard = held(&client, "key").await;
    assert!(dropped_after(1, guard.danger()).await.is_none());
    assert!(dropped_after(1, guard.lost()).await.is_none());
    assert!(
        dropped_after(1, guard.run_while_held(std::future::pending::<()>()))
            .await
            .is_none()
    );
    assert!(guard.is_held());
    assert!(is_recorded(&client, "key").await);
}
