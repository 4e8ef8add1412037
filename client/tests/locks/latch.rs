//! Countdown latches.

use std::time::Duration;

use ringfence_client::{Client, LatchError, counter::Durability};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use tokio::{
    task::{JoinSet, yield_now},
    time::{Instant, sleep, timeout},
};

use super::{SECOND, client_of};

async fn count_down(client: &Client, latch: &str, request: &str) -> Result<(), LatchError> {
    let request = client.counters().request(request).unwrap();
    client.latch(latch)?.count_down(&request).await
}

#[tokio::test(start_paused = true)]
async fn a_latch_opens_when_it_is_counted_down_and_a_repeat_counts_once() {
    let client = client_of(3).await;
    let latch = client.latch("latch").unwrap();
    latch.set(3, Durability::Memory).await.unwrap();
    let first = client.counters().request("1").unwrap();
    for _ in 0..5 {
        latch.count_down(&first).await.unwrap();
        assert_eq!(latch.remaining().await.unwrap(), 2);
    }
    count_down(&client, "latch", "2").await.unwrap();
    timeout(5 * SECOND, latch.opened()).await.unwrap_err();
    count_down(&client, "latch", "3").await.unwrap();
    latch.opened_within(SECOND).await.unwrap();
    for extra in ["4", "5"] {
        count_down(&client, "latch", extra).await.unwrap();
        assert_eq!(latch.remaining().await.unwrap(), 0);
    }
    latch.opened().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_latch_is_set_once() {
    let client = client_of(3).await;
    let latch = client.latch("latch").unwrap();
    assert!(matches!(
        latch.remaining().await,
        Err(LatchError::NotSet(_))
    ));
    let early = count_down(&client, "latch", "1").await;
    assert!(matches!(early, Err(LatchError::NotSet(_))), "{early:?}");
    for count in [0, u64::MAX] {
        let refused = latch.set(count, Durability::Memory).await;
        assert!(matches!(refused, Err(LatchError::Count(of)) if of == count));
    }
    let mut setters = JoinSet::new();
    for count in 1..=8 {
        let latch = client.latch("latch").unwrap();
        setters.spawn(async move { latch.set(count, Durability::Memory).await.is_ok() });
    }
    let set = setters.join_all().await;
    assert_eq!(set.iter().filter(|is_ok| **is_ok).count(), 1);
    let count = latch.remaining().await.unwrap();
    latch.set(count, Durability::Memory).await.unwrap();
    let other = latch.set(count + 1, Durability::Memory).await.unwrap_err();
    assert!(matches!(other, LatchError::AlreadySet(_)) && !other.is_retryable());
    // Accounts of the same name are something else.
    client
        .counters()
        .open("latch")
        .unwrap()
        .balance()
        .await
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn waiters_wake_within_a_second_and_a_wait_ends_in_time() {
    let client = client_of(3).await;
    let latch = client.latch("latch").unwrap();
    let late = latch.opened_within(3 * SECOND).await.unwrap_err();
    assert_eq!(late.to_string(), "latch latch did not open within 3s");
    assert!(late.is_retryable());
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let latch = client.latch("latch").unwrap();
        waiters.spawn(async move {
            latch.opened().await.unwrap();
            Instant::now()
        });
    }
    latch.set(1, Durability::Memory).await.unwrap();
    sleep(10 * SECOND).await;
    assert!(waiters.try_join_next().is_none());
    count_down(&client, "latch", "1").await.unwrap();
    let open = Instant::now();
    for woken in waiters.join_all().await {
        assert!(woken - open < SECOND, "{:?}", woken - open);
    }
}

#[tokio::test(start_paused = true)]
async fn a_countdown_dropped_after_any_turn_is_repeated_and_counts_once() {
    let client = client_of(1).await;
    let latency = Duration::from_millis(5)..Duration::from_millis(9);
    super::faults(&client).latency(latency);
    let turn = async || {
        yield_now().await;
        sleep(Duration::from_millis(1)).await;
    };
    after_every_turn("a countdown", async |turns| {
        let name = format!("latch/{turns}");
        let latch = client.latch(&name).unwrap();
        latch.set(2, Durability::Memory).await.unwrap();
        let request = client.counters().request("1").unwrap();
        let counted = dropped_after(turns, turn, latch.count_down(&request)).await;
        latch.count_down(&request).await.unwrap();
        assert_eq!(latch.remaining().await.unwrap(), 1);
        dropped_after(turns, turn, latch.opened()).await;
        count_down(&client, &name, "2").await.unwrap();
        latch.opened_within(SECOND).await.unwrap();
        counted.is_some()
    })
    .await;
}
