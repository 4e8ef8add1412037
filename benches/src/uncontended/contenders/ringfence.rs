//! Ringfence as an application uses it: token, life and map version, watchdog, all of it.

use std::hint::black_box;

use async_trait::async_trait;
use ringfence_client::{Client, ReleaseAnswer};

use super::{Contender, Failure, LEASE, Worker, one_each};

pub(crate) struct Ringfence {
    name: &'static str,
    client: Client,
}

impl Ringfence {
    pub(crate) fn new(name: &'static str, client: Client) -> Self {
        Self { name, client }
    }
}

#[async_trait]
impl Contender for Ringfence {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        "the client: lock(key).acquire(), guard.release()"
    }

    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure> {
        one_each(locks, |lock| {
            Ok(Task {
                client: self.client.clone(),
                key: format!("{}:{lock}", self.name),
            })
        })
    }
}

struct Task {
    client: Client,
    key: String,
}

#[async_trait]
impl Worker for Task {
    fn locks(&self) -> usize {
        1
    }

    async fn pair(&mut self) -> Result<(), Failure> {
        let guard = self.client.lock(&self.key).lease(LEASE).acquire().await?;
        black_box(guard.token());
        match guard.release().await {
            ReleaseAnswer::Held => Ok(()),
            other => Err(format!("{}: released, and it was {other:?}", self.key).into()),
        }
    }
}
