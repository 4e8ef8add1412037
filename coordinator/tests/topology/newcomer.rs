//! A server that is to become a shard.

use ringfence_coordinator::{
    ids::MapVersion,
    shard::redis::RedisOptions,
    topology::{
        Founder, ShardEntry, ShardName, Swap, Topology, TopologyError, TopologyStore,
        server::{Joined, ServerTopology},
    },
};
use ringfence_ring::{ShardId, Weight};

use super::servers::{Servers, successor};

/// A topology, and a server that is none of its.
pub(crate) struct Stage {
    pub(crate) servers: Servers,
    pub(crate) joined: Joined,
    pub(crate) home: usize,
    pub(crate) newcomer: Servers,
}

impl Stage {
    pub(crate) async fn new(shards: usize) -> Self {
        let (servers, joined, home) = Servers::spawn(shards).await.founded().await;
        Self {
            servers,
            joined,
            home,
            newcomer: Servers::spawn(1).await,
        }
    }

    pub(crate) fn store(&self) -> &ServerTopology {
        &self.joined.store
    }

    pub(crate) fn seed(&self) -> RedisOptions {
        self.newcomer.seeds().remove(0)
    }

    pub(crate) fn address(&self) -> String {
        self.seed().address.to_string()
    }

    pub(crate) async fn take_in(&self) -> Result<Founder, TopologyError> {
        take_in(self.store(), self.seed()).await
    }

    /// Has the record name the newcomer. It owns no slot.
    pub(crate) async fn enter(&self) -> (Topology, ShardId) {
        let founder = self.take_in().await.unwrap();
        let known = self.store().load().await.unwrap();
        let mut next = successor(&known);
        next.last_epoch.0 += 1;
        let entry = ShardEntry {
            address: founder.address,
            life: founder.life,
            epoch: next.last_epoch,
            used: false,
            changed: MapVersion(next.version),
        };
        next.shards.insert(ShardName(founder.id.clone()), entry);
        self.swap(&known, &next).await;
        (next, founder.id)
    }

    /// Has the record name `id` no more.
    pub(crate) async fn leave(&self, id: &ShardId) -> Topology {
        let known = self.store().load().await.unwrap();
        let mut next = successor(&known);
        next.shards.remove(&ShardName(id.clone()));
        self.swap(&known, &next).await;
        next
    }

    pub(crate) async fn swap(&self, known: &Topology, next: &Topology) {
        let swapped = self.store().swap(known.version(), next).await;
        assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
    }

    /// The newcomer's data, without keys named by a former life.
    pub(crate) async fn left(&self) -> Vec<String> {
        let mut keys = self.newcomer.keys(0, "*").await;
        let life = self.newcomer.key_of_life(0, "").await;
        keys.retain(|key| !key.starts_with("ringfence:life:") || key.starts_with(&life));
        let mut parts: Vec<_> = keys.iter().map(|key| key.replace(&life, "")).collect();
        parts.sort();
        parts
    }
}

pub(crate) async fn take_in(
    store: &ServerTopology,
    seed: RedisOptions,
) -> Result<Founder, TopologyError> {
    store.take_in(seed, None, Weight::ONE).await
}
