//! What a lock promises, on embedded shards under simulated time. Every test is repeatable: all
//! time comes from tokio's paused clock, all randomness from one seed.

mod cancel;
mod deadline;
mod election;
mod grace;
mod keys;
mod latch;
mod listing;
mod multi;
mod observer;
mod reentry;
mod release;
mod ring;
mod segmented;
mod trouble;
mod waiting;

use std::{sync::Arc, time::Duration};

use ringfence_client::{Builder, Client, Faults, Guard, TokioClock};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(30);

/// A client of `shards` embedded shards, under simulated time.
async fn client_of(shards: usize) -> Client {
    seeded(7, shards).await
}

async fn seeded(seed: u64, shards: usize) -> Client {
    simulated(seed, shards).build().await.unwrap()
}

fn simulated(seed: u64, shards: usize) -> Builder {
    let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
    Client::builder()
        .embedded(shards)
        .seed(seed)
        .clock(Arc::new(clock))
        .label("test")
}

/// The faults of the only shard.
fn faults(client: &Client) -> Faults {
    client.faults().values().next().unwrap().clone()
}

async fn held(client: &Client, key: &str) -> Guard {
    client.lock(key).try_acquire().await.unwrap()
}

/// Whether the shard has a record of `key`.
async fn is_recorded(client: &Client, key: &str) -> bool {
    client.lock(key).inspect().await.unwrap().holder.is_some()
}

/// Waits until the shard has no record of `key`, for at most `within`.
async fn freed_within(client: &Client, key: &str, within: Duration) {
    let freed = tokio::time::timeout(within, async {
        while is_recorded(client, key).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    freed
        .await
        .unwrap_or_else(|_| panic!("{key:?} is still recorded after {within:?}"));
}
