//! Locks that are held all the while: they come along with their slots, and none is lost.

use std::{future::pending, sync::Arc};

use ringfence_client::{AcquireError, Client, Guard, ReleaseAnswer};
use tokio::task::JoinSet;

use super::{locks::Key, stage::Stage, worker::Shared};

/// How many there are: enough that every batch of slots has some.
pub(super) const HELD: u32 = 1_000;

/// Locks that are held all the while.
#[derive(Debug)]
pub(super) struct Held(Vec<Guard>);

impl Held {
    /// Acquires them, the same number by each client.
    pub(super) async fn acquire(stage: &Stage, shared: &Arc<Shared>) -> Result<Self, AcquireError> {
        let take = |(number, client): (u32, &Client)| {
            let (client, shared) = (client.clone(), shared.clone());
            async move { shared.locks.try_acquire(&client, Key::Held(number)).await }
        };
        let clients = stage.clients.iter().cycle();
        let taken: JoinSet<_> = (1..=HELD).zip(clients).map(take).collect();
        let taken = taken.join_all().await.into_iter();
        taken.collect::<Result<_, _>>().map(Self)
    }

    /// Tries again and again to acquire each with another client, and counts the grants: there must be none. Another
    /// task of the same client would not ask the shard.
    pub(super) async fn contest(stage: &Stage, shared: &Shared, granted: &mut Option<u32>) {
        if stage.clients.len() < 2 {
            return pending().await;
        }
        let granted = granted.insert(0);
        loop {
            let others = stage.clients.iter().cycle().skip(1);
            for (number, client) in (1..=HELD).zip(others) {
                let asked = shared.locks.try_acquire(client, Key::Held(number));
                *granted += u32::from(asked.await.is_ok());
            }
        }
    }

    /// Releases them. Returns the number of those lost before.
    pub(super) async fn release(self) -> u32 {
        let given = self.0.into_iter().map(Guard::release);
        let given = given.collect::<JoinSet<_>>().join_all().await.into_iter();
        given
            .filter(|&answer| answer == ReleaseAnswer::Lost)
            .count() as u32
    }
}
