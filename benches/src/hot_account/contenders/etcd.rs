//! By transactions of etcd: each writes the account and a key for its id, if the account is as it was read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use tokio::sync::Mutex;
use tonic::transport::{Channel, Endpoint};

use super::{Account, PUT_IN, Reach, Taker};
use crate::{Failure, etcd};

/// The key of the account.
const ACCOUNT: &str = "account";

/// One connection, which all tasks share. They take turns: otherwise all but one of them would read again.
pub(crate) struct Etcd {
    channel: Channel,
    turn: Mutex<()>,
    /// The last id.
    number: AtomicU64,
}

impl Etcd {
    pub(crate) async fn new(reach: &Reach, is_first: bool) -> Result<Self, Failure> {
        let endpoint = Endpoint::from_shared(reach.database.clone())?;
        let channel = endpoint.connect().await?;
        if is_first {
            let put_in = PUT_IN.to_string();
            etcd::swap(&channel, (ACCOUNT, 0), &put_in, "put in").await?;
        }
        Ok(Self {
            channel,
            turn: Mutex::default(),
            number: AtomicU64::new(0),
        })
    }

    async fn read(&self) -> Result<(i64, i64), Failure> {
        let (text, revision) = etcd::read(&self.channel, ACCOUNT).await?;
        Ok((text.parse()?, revision))
    }
}

#[async_trait]
impl Account for Etcd {
    async fn deduct(&self, _taker: Taker) -> Result<(), Failure> {
        let number = self.number.fetch_add(1, Relaxed);
        let id = format!("id {} {number}", std::process::id());
        let _turn = self.turn.lock().await;
        loop {
            let (balance, revision) = self.read().await?;
            let next = (balance - 1).to_string();
            if etcd::swap(&self.channel, (ACCOUNT, revision), &next, &id).await? {
                return Ok(());
            }
        }
    }

    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        Ok(self.read().await?.0.into())
    }
}
