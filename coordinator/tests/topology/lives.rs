//! What belongs to a life that is over goes when the next one is armed.

use ringfence_coordinator::{
    shard::{Grace, Shard, ShardError, redis::RedisShard},
    topology::{Swap, Topology, TopologyStore},
};

use super::servers::{Servers, options, successor};

/// A server that ends before it is armed has data under its life's name already: the fence, from a
/// process that believes it armed, or a copy of the change that adds it.
#[tokio::test]
async fn lives_that_were_never_armed_leave_nothing_behind() {
    let mut servers = Servers::spawn_saving(2).await;
    let joined = servers.found().await;
    let home = servers.place(&joined.topology.home.address);
    let member = servers.others(home)[0];
    let address = servers.addresses()[member].clone();

    let mut topology = Topology::clone(&joined.topology);
    let shard_id = topology
        .shards
        .iter()
        .find(|(_, entry)| entry.address == address);
    let shard_id = shard_id.unwrap().0.0.clone();
    let shard = RedisShard::new(options(&servers.0[member].url()));
    let connect = async || shard.connect_control(None).await.unwrap();
    for raised in [false, true] {
        servers.0[member].restart().await.unwrap();
        let mut link = connect().await;
        let refused = if raised {
            link.raise(topology.incarnation, topology.last_epoch).await
        } else {
            link.mark_quiet(&topology.mark_quiet(&shard_id))
                .await
                .map(drop)
        };
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    }
    for _ in 0..3 {
        servers.0[member].restart().await.unwrap();
        let mut next = successor(&topology);
        let mut shards = next.shards.values_mut();
        let entry = shards.find(|entry| entry.address == address).unwrap();
        entry.life = servers.life(member).await;
        let swap = joined.store.swap(topology.version(), &next).await;
        assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
        topology = next;
    }
    let told = servers.keys(member, "ringfence:life:*").await;
    assert!(!told.is_empty());

    let arm = topology.arm(&shard_id, Grace::None);
    assert!(connect().await.arm(&arm).await.unwrap().armed_now);
    let of_this_life = servers.key_of_life(member, "").await;
    let left = servers.keys(member, "ringfence:life:*").await;
    assert!(
        left.iter().all(|key| key.starts_with(&of_this_life)),
        "{left:?}"
    );
}
