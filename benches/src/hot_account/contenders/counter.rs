//! From a counter.

use std::time::Duration;

use async_trait::async_trait;
use ringfence_benches::Failure;
use ringfence_client::{
    Client, Counters,
    counter::{Amount, Counter, Durability, Terms},
    limits::BATCH_MAX,
};

use super::{Account, PUT_IN};
use crate::{
    servers::Servers,
    setup::{How, Log, Setup},
};

/// How long a deduction is remembered.
const REMEMBER_MS: u64 = 2_000;

pub(crate) struct Coins {
    counters: Counters,
    counter: Counter,
}

impl Coins {
    pub(crate) async fn new(setup: &Setup, servers: &Servers) -> Result<Self, Failure> {
        let per_call = match setup.how {
            How::Alone => 1,
            _ => BATCH_MAX,
        };
        let client = Client::builder()
            .redis(servers.urls(setup))
            .prefix(&format!("{}-{}", setup.how.name(), setup.shards))
            .servers_are_new(true)
            .counters_per_call(per_call);
        let counters = client.build().await?.counters();
        let terms = Terms {
            idempotency_for_ms: REMEMBER_MS,
            durability: match setup.log {
                Log::Always => Durability::Disk,
                Log::Off | Log::EverySecond => Durability::Memory,
            },
            ..Terms::default()
        };
        let name = format!("hot of {}", setup.segments);
        let counter = counters.create(&name, terms, setup.segments).await?;
        let each = Amount::new(PUT_IN / i64::from(setup.segments))?;
        let head = counter.read_head().await?;
        for segment in 0..setup.segments {
            // Whoever is at home there finds it there.
            let id = loop {
                let id = counters.new_request();
                if head.home_of(&id) == Some(segment) {
                    break id;
                }
            };
            counter.deposit(&id, each).await?;
        }
        Ok(Self { counters, counter })
    }
}

#[async_trait]
impl Account for Coins {
    async fn deduct(&self, _task: usize) -> Result<(), Failure> {
        let one = Amount::new(1).expect("1 is an amount");
        Ok(self
            .counter
            .deduct(&self.counters.new_request(), one)
            .await?)
    }

    async fn keep(&self) {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            // What it could not do, the next one does.
            let _ = self.counter.sweep().await;
        }
    }

    async fn left(&self) -> Result<i128, Failure> {
        Ok(self.counter.exact_balance().await?.available)
    }
}
