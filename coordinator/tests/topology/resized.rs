//! A home that dies in the midst of a resize.

use std::sync::Arc;

use ringfence_coordinator::{
    ids::Incarnation,
    topology::{Goal, Migration, ShardName, Topology, TopologyStore, Weights},
};
use ringfence_ring::{ShardId, Slot};

use super::{
    newcomer::Stage,
    servers::{join, recover_needed, successor},
};

impl Stage {
    /// Has the newcomer enter, and a few slots of each shard on their way to it.
    async fn begin(&self) -> Topology {
        let before: Weights = weights(&self.joined.topology);
        let (entered, to) = self.enter().await;
        let mut next = successor(&entered);
        let after = weights(&entered);
        let migrations = before.keys().enumerate().map(|(place, from)| {
            next.last_epoch.0 += 1;
            let slots: Vec<Slot> = entered.table.slots_of(&from.0).take(3 + place).collect();
            Migration {
                epoch: next.last_epoch,
                from: from.clone(),
                to: ShardName(to.clone()),
                listed: place > 0,
                slots,
            }
        });
        next.migrations = migrations.collect();
        next.goal = Some(Goal { before, after });
        self.swap(&entered, &next).await;
        next
    }
}

fn weights(topology: &Topology) -> Weights {
    topology
        .shards
        .keys()
        .map(|name| (name.clone(), 1))
        .collect()
}

/// From where to where each migrating slot goes.
fn ways(topology: &Topology) -> Vec<(Slot, &ShardId, &ShardId)> {
    let of = |migration| {
        let Migration {
            from, to, slots, ..
        }: &Migration = migration;
        slots.iter().map(|slot| (*slot, &from.0, &to.0))
    };
    let mut ways: Vec<_> = topology.migrations.iter().flat_map(of).collect();
    ways.sort();
    ways
}

fn assert_goes_on(recovered: &Topology, before: &Topology) {
    assert!(recovered.incarnation > before.incarnation);
    assert!(recovered.last_epoch > before.last_epoch);
    assert_eq!(recovered.goal, before.goal);
    assert_eq!(recovered.table, before.table);
    assert_eq!(ways(recovered), ways(before));
    // No step of before can be taken for one of now.
    let mut migrations = recovered.migrations.iter();
    assert!(
        migrations.all(|migration| migration.epoch == recovered.last_epoch && !migration.listed)
    );
    let names = |topology: &Topology| topology.shards.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(recovered), names(before));
}

#[tokio::test]
async fn a_resize_under_way_is_still_under_way_once_its_home_is_recovered() {
    let mut stage = Stage::new(2).await;
    let before = stage.begin().await;
    stage.servers.0[stage.home].restart().await.unwrap();
    let recovered = stage.store().load().await.unwrap();
    assert_goes_on(&recovered, &before);
    // A joining server is a member: no earlier request takes effect there either.
    let fence: Incarnation = stage.newcomer.fence(0).await.unwrap().parse().unwrap();
    assert_eq!(fence, recovered.incarnation);
    assert_eq!(*stage.store().load().await.unwrap(), *recovered);
}

#[tokio::test]
async fn a_copy_at_the_shard_that_is_coming_in_is_enough() {
    let mut stage = Stage::new(1).await;
    let before = stage.begin().await;
    stage.servers.0[0].restart().await.unwrap();
    let recovered = join(stage.newcomer.seeds()).await.unwrap().topology;
    assert_goes_on(&recovered, &before);
    assert_eq!(recovered.home.address, before.home.address);
}

#[tokio::test]
async fn nothing_begins_while_the_shard_that_is_coming_in_is_silent() {
    let mut stage = Stage::new(2).await;
    let before = stage.begin().await;
    stage.servers.0[stage.home].restart().await.unwrap();
    stage.newcomer.0[0].stop();
    let error = recover_needed(stage.store().load().await);
    assert!(error.contains("--attest-dead c"), "{error}");
    assert_eq!(stage.servers.fence(stage.home).await, None);
    stage.newcomer.0[0].cont();
    let recovered: Arc<Topology> = stage.store().load().await.unwrap();
    assert_goes_on(&recovered, &before);
}
