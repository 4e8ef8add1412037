//! The notifications of both, to each client, in order. Only the holders of one key may be told in any order.

use std::{pin::pin, time::Duration};

use futures_util::FutureExt;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::ClientId,
    shard::{Notification, Shard, Subscription, memory::MemoryShard},
};
use tokio::time::timeout;

use super::{
    pair::{Checked, Pair},
    steps::CLIENTS,
};
use crate::redis_fixture::Redis;

/// How long a message may take on a busy machine.
const DELIVERY_MAX: Duration = Duration::from_secs(120);

/// One client, listening to Redis and to memory.
pub(crate) type Ears = [Box<dyn Subscription>; 2];

/// Lets every client listen to both.
pub(crate) async fn listen(redis: &Redis, memory: &MemoryShard) -> Vec<Ears> {
    let mut ears = Vec::new();
    for client in 0..CLIENTS {
        let client = ClientId(client.into());
        let redis = redis.shard().listen(client).await.unwrap();
        ears.push([redis, memory.listen(client).await.unwrap()]);
    }
    ears
}

impl Pair<'_> {
    /// The notifications of the memory shard since the last call. Redis sent the same, and may deliver them
    /// later. If one of them sent more, the next comparison finds it.
    pub(crate) async fn heard(&mut self) -> Checked<Vec<Notification>> {
        let mut heard = Vec::new();
        for client in 0..self.ears.len() {
            let mut found = Vec::new();
            while let Some(notification) = self.next_of_memory(client) {
                found.push(notification);
            }
            let mut expected = Vec::new();
            while expected.len() < found.len() {
                match timeout(DELIVERY_MAX, self.ears[client][0].next()).await {
                    Ok(notification) => expected.push(notification.expect("it goes on")),
                    Err(_) => break,
                }
            }
            let [found, expected] = [found, expected].map(holders_in_order);
            let same = expected == found;
            self.check(same, &format!("client {client} is told"), &expected, &found)?;
            heard.extend(found);
        }
        Ok(heard)
    }

    fn next_of_memory(&mut self, client: usize) -> Option<Notification> {
        // It is there by the time that the batch is answered.
        let next = pin!(self.ears[client][1].next()).now_or_never();
        next.map(|notification| notification.expect("it goes on"))
    }
}

/// Brings the holders that are told at the same time that their key is contended in one order: Redis has its own.
fn holders_in_order(mut told: Vec<Notification>) -> Vec<Notification> {
    let holder = |told: &Notification| match told {
        Notification::Contended { key, nonce } => Some((key.clone(), *nonce)),
        _ => None,
    };
    let together = |one: &Notification, other: &Notification| {
        let [one, other] = [one, other].map(|told| holder(told).map(|(key, _)| key));
        one.is_some() && one == other
    };
    for holders in told.chunk_by_mut(together) {
        holders.sort_by_key(|told| holder(told).map(|(_, nonce)| nonce));
    }
    told
}
