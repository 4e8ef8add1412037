//! Many at once.

use ringfence_client::{counter::limits::SEGMENTS_MAX, metrics::Histogram};

use super::{account, amount, client_of, deduct_at_once, exact};

#[tokio::test(start_paused = true)]
async fn as_many_are_served_as_there_is_money_for_wherever_it_is() {
    let client = client_of(3).await;
    let counters = client.counters();
    // All of it in one segment: the others borrow.
    let counter = account(&counters, "coins", 8, 100).await;
    let served = deduct_at_once(&counters, "coins", 130).await;
    assert_eq!((served, exact(&counter).await), (100, 0));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn money_that_leaves_one_account_arrives_at_the_other() {
    let client = client_of(3).await;
    let counters = client.counters();
    let from = account(&counters, "from", 4, 100).await;
    let to = account(&counters, "to", 4, 0).await;
    for _ in 0..10 {
        let id = counters.new_request();
        from.transfer(&id, amount(7), &to).await.unwrap();
        from.transfer(&id, amount(7), &to).await.unwrap();
    }
    assert_eq!((exact(&from).await, exact(&to).await), (30, 70));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn all_segments_are_read_in_as_many_calls_as_shards() {
    const SHARDS: usize = 3;
    let client = client_of(SHARDS).await;
    let counters = client.counters();
    let counter = account(&counters, "wide", SEGMENTS_MAX, 5).await;
    let calls = || -> u64 {
        let reading = client.metrics().read().unwrap();
        let batches = reading.shards.iter().map(|shard| shard.metrics.batches());
        batches.map(Histogram::count).sum()
    };
    let before = calls();
    assert_eq!(counter.balance().await.unwrap().available, 5);
    assert_eq!(calls() - before, SHARDS as u64);
    // An exact one is two reads.
    assert_eq!(exact(&counter).await, 5);
    assert_eq!(calls() - before, 3 * SHARDS as u64);
}
