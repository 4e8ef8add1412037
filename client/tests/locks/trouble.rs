//! One shard's trouble is its own.

use ringfence_client::{Client, Namespace, counter::Terms, limits};
use tokio::{runtime::Builder, time::sleep};

use super::{LEASE, SECOND, client_of, held};

/// A key on each shard.
fn one_key_a_shard(client: &Client) -> Vec<(ringfence_client::ShardId, String)> {
    let shard_of = |key: &String| client.shard_of(&Namespace::default(), key).unwrap();
    client
        .faults()
        .keys()
        .map(|shard| {
            let mut keys = (0..).map(|index| format!("key/{index}"));
            (
                shard.clone(),
                keys.find(|key| &shard_of(key) == shard).unwrap(),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_stalled_shard_delays_neither_the_others_nor_their_renewals() {
    let client = client_of(3).await;
    let keys = one_key_a_shard(&client);
    let (stalled, _) = &keys[1];
    let mut guards = Vec::new();
    for (shard, key) in &keys {
        guards.push((shard, held(&client, key).await));
    }
    client.faults()[stalled].stall();
    sleep(3 * LEASE).await;
    for (shard, guard) in &guards {
        assert_eq!(guard.is_held(), *shard != stalled, "{shard}");
    }
    for (shard, key) in &keys {
        let other = format!("{key}/other");
        if client.shard_of(&Namespace::default(), &other).unwrap() != *stalled {
            let asked = tokio::time::Instant::now();
            drop(held(&client, &other).await);
            assert!(asked.elapsed() < SECOND / 100, "{shard}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_renewals_travel_together() {
    let client = client_of(1).await;
    let mut guards = Vec::new();
    for index in 0..1000 {
        guards.push(held(&client, &format!("key/{index}")).await);
    }
    sleep(10 * LEASE).await;
    assert!(guards.iter().all(ringfence_client::Guard::is_held));
}

#[tokio::test(start_paused = true)]
async fn tokens_go_on_rising_when_a_shard_runs_out_of_numbers() {
    let client = client_of(1).await;
    let before = held(&client, "key").await;
    super::faults(&client).set_counter(limits::COUNTER_MAX - 1);
    let (mut last, mut epoch) = (before.token(), before.token().epoch());
    before.release().await;
    for _ in 0..20 {
        let guard = client.lock("key").wait(SECOND).acquire().await.unwrap();
        assert!(guard.token() > last, "{:?} after {last:?}", guard.token());
        last = guard.token();
        epoch = epoch.max(guard.token().epoch());
        guard.release().await;
        sleep(SECOND / 10).await;
    }
    assert_eq!(
        epoch,
        client.topology().last_epoch,
        "a fresh epoch is in use"
    );
    assert!(last.counter() < 100);
}

/// As a client in a static that one test builds and another uses: each has a runtime of its own.
#[test]
fn a_client_whose_runtime_has_ended_says_so() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime()
        .block_on(Client::builder().embedded(1).build())
        .unwrap();
    runtime().block_on(async {
        let refused = client.lock("key").acquire().await.unwrap_err();
        assert!(!refused.is_retryable(), "{refused:?}");
        let inspected = client.lock("key").inspect().await.unwrap_err();
        let terms = Terms::in_memory();
        let created = client
            .counters()
            .create("coins", terms, 1)
            .await
            .unwrap_err();
        for said in [
            refused.to_string(),
            inspected.to_string(),
            created.to_string(),
        ] {
            assert!(
                said.contains("the runtime that the client was built in has ended"),
                "{said}"
            );
        }
    });
}
