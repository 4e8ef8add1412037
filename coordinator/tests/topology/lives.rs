//! What belongs to a life that is over goes when the next one is armed.

use ringfence_coordinator::{
    shard::{Grace, Lane, Shard, redis::RedisShard},
    topology::{Swap, Topology, TopologyStore},
};

use crate::servers::{Servers, options, successor};

/// A server that ends between the topology's change and its arming has a copy of that change under
/// its life's name.
#[tokio::test]
async fn lives_that_were_never_armed_leave_nothing_behind() {
    let mut servers = Servers::spawn_saving(2).await;
    let joined = servers.found().await;
    let home = servers.place(&joined.topology.home.address);
    let member = servers.others(home)[0];
    let address = servers.addresses()[member].clone();

    let mut topology = Topology::clone(&joined.topology);
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
    let lives = servers.keys(member, "ringfence:life:*:copy").await;
    assert!(lives.len() > 1, "{lives:?}");

    let (name, _) = topology
        .shards
        .iter()
        .find(|(_, entry)| entry.address == address)
        .unwrap();
    let shard = RedisShard::new(options(&servers.0[member].url()));
    let mut link = shard.connect(Lane::Control, None).await.unwrap();
    let armed = link.arm(&topology.arm(&name.0, Grace::None)).await.unwrap();
    assert!(armed.armed_now);
    let of_this_life = servers.key_of_life(member, "").await;
    let left = servers.keys(member, "ringfence:life:*").await;
    assert!(
        left.iter().all(|key| key.starts_with(&of_this_life)),
        "{left:?}"
    );
}
