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
    /// Takes them, as many by each client.
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

    /// Tries to take each as somebody else, one after the other and again, and counts how often that is
    /// granted: never, if a lock has one holder. Within a client it would not even be asked of a shard.
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

    /// Gives them back. Answers how many had been lost.
    pub(super) async fn release(self) -> u32 {
        let given = self.0.into_iter().map(Guard::release);
        let given = given.collect::<JoinSet<_>>().join_all().await.into_iter();
        given
            .filter(|&answer| answer == ReleaseAnswer::Lost)
            .count() as u32
    }
}
