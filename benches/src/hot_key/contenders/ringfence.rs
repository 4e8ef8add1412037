//! Ringfence as an application uses it: token, life and map version, watchdog, all of it.

use std::hint::black_box;

use async_trait::async_trait;
use ringfence_benches::{Failure, LEASE};
use ringfence_client::{Client, Guard, ReleaseAnswer};

use super::Worker;

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
    pub(super) async fn new(url: &str, key: &str) -> Result<Self, Failure> {
        Ok(Self {
            client: Client::builder().redis([url]).build().await?,
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
    async fn acquire(&mut self) -> Result<(), Failure> {
        let guard = self.client.lock(&self.key).lease(LEASE).acquire().await?;
        black_box(guard.token());
        self.guard = Some(guard);
        Ok(())
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let guard = self.guard.take().ok_or("nothing is held")?;
        match guard.release().await {
            ReleaseAnswer::Held => Ok(()),
            other => Err(format!("{}: released, and it was {other:?}", self.key).into()),
        }
    }
}
