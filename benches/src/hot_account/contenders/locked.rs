//! Under a lock, or any of some: take it, read its row, write it, give it back.

use std::time::Duration;

use async_trait::async_trait;
use redis::{AsyncCommands, aio::MultiplexedConnection};
use ringfence_client::{Client, SegmentedLock};

use super::super::setup::{How, Setup};
use super::{Account, PUT_IN, Reach, Taker};
use crate::Failure;

/// Rows on a server of plain Redis, each under a lock of its own.
pub(crate) struct Rows {
    client: Client,
    store: MultiplexedConnection,
    /// Their names there.
    names: Vec<String>,
    /// None: there is one lock, called as its row is.
    segmented: Option<SegmentedLock>,
}

impl Rows {
    pub(crate) async fn new(setup: &Setup, reach: &Reach, is_first: bool) -> Result<Self, Failure> {
        let urls = reach.redis.clone();
        let prefix = setup.prefix();
        let mut store = redis::Client::open(urls[0].as_str())?
            .get_multiplexed_async_connection()
            .await?;
        let names = (0..setup.segments).map(|row| format!("{prefix} row {row}"));
        let names: Vec<String> = names.collect();
        for name in names.iter().filter(|_| is_first) {
            let () = store.set(name, PUT_IN / i64::from(setup.segments)).await?;
        }
        let mut client = Client::builder()
            .redis(urls)
            .prefix(&prefix)
            .servers_are_new(true);
        if setup.how == How::Lock {
            client = client.handoff(0, Duration::ZERO);
        }
        let client = client.build().await?;
        let segmented = match setup.how {
            How::Segments => Some(client.segmented_lock("rows").create(setup.segments).await?),
            _ => None,
        };
        Ok(Self {
            client,
            store,
            names,
            segmented,
        })
    }
}

impl Rows {
    async fn read_and_write(&self, name: &str) -> Result<(), Failure> {
        let mut store = self.store.clone();
        let value: i64 = store.get(name).await?;
        Ok(store.set(name, value - 1).await?)
    }
}

#[async_trait]
impl Account for Rows {
    async fn deduct(&self, _taker: Taker) -> Result<(), Failure> {
        match &self.segmented {
            None => {
                let name = &self.names[0];
                let guard = self.client.lock(name).acquire().await?;
                self.read_and_write(name).await?;
                guard.release().await;
            }
            Some(segmented) => {
                let guard = segmented.any().acquire().await?;
                self.read_and_write(&self.names[guard.segment() as usize])
                    .await?;
                guard.release().await;
            }
        }
        Ok(())
    }

    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        let mut left = 0;
        for name in &self.names {
            let value: i64 = self.store.clone().get(name).await?;
            left += i128::from(value);
        }
        Ok(left)
    }
}
