//! A store's future dropped under way: the record is the one before or the one after, and any
//! process that loads it can go on.

use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use ringfence_coordinator::topology::{Swap, Topology, TopologyStore, server::Joined};
use ringfence_test_support::Relay;
use tokio::task::yield_now;

use super::servers::{Servers, join, options, successor};

/// Two servers, the topology on them by ways that take long, and the ways.
async fn founded_by_relays() -> (Servers, Vec<Relay>, Joined) {
    let servers = Servers::spawn(2).await;
    let (mut relays, mut seeds) = (Vec::new(), Vec::new());
    for server in &servers.0 {
        let relay = Relay::to(server.port()).await;
        seeds.push(options(&format!("redis://127.0.0.1:{}", relay.port())));
        relays.push(relay);
    }
    let joined = join(seeds).await.unwrap();
    (servers, relays, joined)
}

#[tokio::test]
async fn a_load_dropped_after_any_turn_leaves_the_store_as_it_was() {
    let (_servers, _relays, joined) = founded_by_relays().await;
    after_every_turn("a load", async |turns| {
        let loaded = dropped_after(turns, yield_now, joined.store.load()).await;
        assert_eq!(joined.store.load().await.unwrap(), joined.topology);
        loaded.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_swap_dropped_after_any_turn_is_in_force_or_not_as_the_next_load_says() {
    let (servers, _relays, joined) = founded_by_relays().await;
    let seeds = joined.topology.shards.values();
    let reader = join(seeds.map(|entry| options(&entry.address)).collect());
    let reader = reader.await.unwrap();
    let mut current = joined.topology.clone();
    let (mut kept, mut taken) = (0, 0);
    after_every_turn("a swap", async |turns| {
        let next = successor(&current);
        let swap = joined.store.swap(current.version(), &next);
        let swapped = dropped_after(turns, yield_now, swap).await;
        let done = swapped.is_some();
        assert!(
            matches!(swapped, None | Some(Ok(Swap::Done))),
            "{swapped:?}"
        );

        let loaded = joined.store.load().await.unwrap();
        assert!(*loaded == next || (!done && loaded == current));
        *(if *loaded == next {
            &mut taken
        } else {
            &mut kept
        }) += 1;
        current = loaded;
        is_copied(&servers, &current).await;
        assert_eq!(reader.store.load().await.unwrap(), current);
        done
    })
    .await;
    let seen = format!("{kept} swaps had no effect, {taken} had");
    assert!(kept > 0 && taken > 1, "{seen}");
}

/// A member has a copy of `topology`.
async fn is_copied(servers: &Servers, topology: &Topology) {
    let mut copies = Vec::new();
    for place in 0..2 {
        let key = servers.key_of_life(place, "copy").await;
        copies.extend(servers.get(place, &key).await);
    }
    let newest = format!("{} {} ", topology.incarnation, topology.version);
    assert!(
        copies.iter().any(|copy| copy.starts_with(&newest)),
        "{copies:?}"
    );
}
