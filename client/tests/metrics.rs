//! The numbers of a client.

use std::{sync::Arc, time::Duration};

use prometheus_client::{encoding::text::encode, registry::Registry};
use ringfence_client::{
    Client, TokioClock,
    metrics::{End, Outcome},
};
use tokio::time::{sleep, timeout};

#[tokio::test(start_paused = true)]
async fn outcomes_and_ends_are_counted() {
    let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
    let builder = Client::builder().embedded(1).clock(Arc::new(clock));
    let client = builder.servers_are_new(true).build().await.unwrap();
    let mut registry = Registry::default();
    client.register_metrics(&mut registry);
    let held = client.lock("key").acquire().await.unwrap();
    client.lock("key").try_acquire().await.unwrap_err();
    let short = Duration::from_millis(50);
    client.lock("key").wait(short).acquire().await.unwrap_err();
    let other = client.lock("key");
    timeout(short, other.acquire()).await.unwrap_err();
    assert_eq!(client.metrics().read().unwrap().shards[0].metrics.held(), 1);
    let release = async {
        sleep(short).await;
        held.release().await
    };
    let (next, _) = tokio::join!(other.acquire(), release);
    next.unwrap().release().await;

    let reading = client.metrics().read().unwrap();
    let metrics = &reading.shards[0].metrics;
    for outcome in Outcome::ALL {
        let counts = metrics.acquisitions(outcome).buckets();
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let expected = match outcome {
            Outcome::Granted => 2,
            Outcome::Unavailable | Outcome::Refused => 0,
            Outcome::Held | Outcome::TimedOut | Outcome::Cancelled => 1,
        };
        assert_eq!(count, expected, "{outcome:?}");
    }
    assert!(metrics.acquisitions(Outcome::TimedOut).sum() >= 0.05);
    for outcome in Outcome::AFTER_A_WAIT {
        let waits = metrics.waits(outcome).unwrap();
        assert_eq!(waits.count(), 1, "{outcome:?}");
        assert!(waits.sum() >= 0.05, "{outcome:?}");
    }
    assert!(metrics.holds(End::Released).sum() >= 0.1);
    assert_eq!((metrics.held(), metrics.waiting()), (0, 0));

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let line = "ringfence_acquire_seconds_bucket{le=\"+Inf\",shard=\"a\",outcome=\"held\"} 1\n";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("ringfence_hold_seconds_bucket{le=\"0.0005\""),
        "{text}"
    );
    assert!(!text.contains("key"), "{text}");

    client.close().await;
    drop((reading, other, client));
    text.clear();
    encode(&mut text, &registry).unwrap();
    assert_eq!(text, "# EOF\n", "the numbers end with the client");
}
