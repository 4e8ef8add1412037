//! From a counter.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use ringfence_client::{
    Client, Counter, Counters,
    counter::{Amount, Durability, Terms},
    limits::BATCH_MAX,
};

use super::super::setup::{How, Log, Setup};
use super::{Account, PUT_IN, Reach, Taker};
use crate::Failure;

/// How long a deduction is remembered.
const REMEMBER_MS: u64 = 2_000;

/// An account for each number of tasks: what one's deductions have it remember, it has to forget while it is measured.
pub(crate) struct Coins {
    counters: Counters,
    of: BTreeMap<usize, Counter>,
}

impl Coins {
    pub(crate) async fn new(
        setup: &Setup,
        tasks: &[usize],
        reach: &Reach,
        is_first: bool,
    ) -> Result<Self, Failure> {
        let per_call = match setup.how {
            How::Alone => 1,
            _ => BATCH_MAX,
        };
        let client = Client::builder()
            .redis(reach.redis.clone())
            .prefix(&setup.prefix())
            .servers_are_new(true)
            .counters_per_call(per_call);
        let counters = client.build().await?.counters();
        let terms = Terms {
            idempotency_for_ms: REMEMBER_MS,
            idempotency_at_least_ms: REMEMBER_MS,
            durability: match setup.log {
                Log::Always => Durability::Disk,
                Log::Off | Log::EverySecond => Durability::Memory,
            },
            effects_max: match setup.how {
                How::Logged => Terms::in_memory().effects_max,
                _ => 0,
            },
            ..Terms::in_memory()
        };
        let mut of = BTreeMap::new();
        for &tasks in tasks {
            let name = format!("hot of {}, {tasks} tasks", setup.segments);
            let counter = counters.create(&name, terms, setup.segments).await?;
            if is_first {
                fill(&counters, &counter, setup.segments).await?;
            }
            of.insert(tasks, counter);
        }
        Ok(Self { counters, of })
    }
}

/// Puts as much into each segment.
pub(crate) async fn fill(
    counters: &Counters,
    counter: &Counter,
    segments: u32,
) -> Result<(), Failure> {
    let each = Amount::new(PUT_IN / i64::from(segments))?;
    let account = counter.at_shards().expect("the client reaches its shards");
    let manifest = account.read_manifest().await?;
    for segment in 0..segments {
        // A request whose home is that segment finds it there.
        let id = loop {
            let id = counters.new_request();
            if manifest.home_of(&id) == Some(segment) {
                break id;
            }
        };
        counter.deposit(&id, each).await?;
    }
    Ok(())
}

#[async_trait]
impl Account for Coins {
    async fn deduct(&self, taker: Taker) -> Result<(), Failure> {
        let one = Amount::new(1).expect("1 is an amount");
        let counter = &self.of[&taker.of];
        counter.deduct(&self.counters.new_request(), one).await?;
        Ok(())
    }

    async fn keep(&self, takers: usize) {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            // What it could not do, the next one does.
            let _ = self.of[&takers].sweep().await;
        }
    }

    async fn left(&self) -> Result<i128, Failure> {
        // Other contenders have one account that is put in once.
        let mut left = -i128::from(PUT_IN) * (self.of.len() as i128 - 1);
        for counter in self.of.values() {
            left += counter.exact_balance().await?.available;
        }
        Ok(left)
    }
}
