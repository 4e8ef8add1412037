//! Locks that are held all the time.

use std::time::Duration;

use ringfence_client::{Client, Guard};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::Failure;

/// Tasks that take them at the start.
const TAKERS: usize = 64;

/// Guards; they end with this value.
pub(crate) struct Held(Vec<Guard>);

impl Held {
    /// Takes `count` locks for `lease`, over a third of it: so their renewals never come all at once.
    pub(crate) async fn start(
        client: &Client,
        count: usize,
        lease: Duration,
    ) -> Result<Self, Failure> {
        let begin = Instant::now();
        let turn = move |number: usize| begin + lease.mul_f64(number as f64 / count as f64 / 3.0);
        let mut takers = JoinSet::new();
        for taker in 0..TAKERS {
            let client = client.clone();
            takers.spawn(async move {
                let mut guards = Vec::new();
                for number in (taker..count).step_by(TAKERS) {
                    sleep_until(turn(number)).await;
                    let key = key(number);
                    guards.push(client.lock(&key).lease(lease).acquire().await?);
                }
                Ok::<_, Failure>(guards)
            });
        }
        let mut guards = Vec::with_capacity(count);
        while let Some(taken) = takers.join_next().await {
            guards.append(&mut taken??);
        }
        Ok(Self(guards))
    }

    /// How many of them are not held any more.
    pub(crate) fn lost(&self) -> usize {
        self.0.iter().filter(|guard| !guard.is_held()).count()
    }
}

/// The key of a lock.
pub(crate) fn key(number: usize) -> String {
    format!("held/{number}")
}
