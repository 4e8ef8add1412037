//! Ringfence as an application uses it: token, life and map version, watchdog, all of it.

use std::time::Duration;

use async_trait::async_trait;
use ringfence_client::{Client, Guard, ReleaseAnswer};

use super::{Who, Worker};
use crate::{Failure, LEASE};

/// How long the contender that lingers keeps a lock that nobody in its process has.
const LINGER: Duration = Duration::from_millis(50);

/// Founds the topology on the new server at `url`, so that no worker has to wait out a grace.
pub(super) async fn found(url: &str) -> Result<(), Failure> {
    let client = Client::builder().redis([url]).servers_are_new(true);
    client.build().await?.close().await;
    Ok(())
}

pub(super) struct Ringfence {
    client: Client,
    key: String,
    guard: Option<Guard>,
}

impl Ringfence {
    /// A client with defaults, or configured as the contender says.
    pub(super) async fn new(who: Who, url: &str, key: &str) -> Result<Self, Failure> {
        let client = Client::builder().redis([url]);
        let client = match who {
            Who::HandoffOff => client.handoff(0, Duration::ZERO),
            Who::Linger => client.linger("default", LINGER),
            _ => client,
        };
        Ok(Self {
            client: client.build().await?,
            key: key.to_owned(),
            guard: None,
        })
    }
}

impl Clone for Ringfence {
    /// Another task's, which holds nothing yet.
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            key: self.key.clone(),
            guard: None,
        }
    }
}

#[async_trait]
impl Worker for Ringfence {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let guard = self.client.lock(&self.key).lease(LEASE).acquire().await?;
        let token = guard.token().get();
        self.guard = Some(guard);
        Ok(Some(token))
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let guard = self.guard.take().ok_or("nothing is held")?;
        match guard.release().await {
            ReleaseAnswer::Held => Ok(()),
            other => Err(format!("{}: released, and it was {other:?}", self.key).into()),
        }
    }
}
