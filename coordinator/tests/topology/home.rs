//! A record is used only while its home lives the life it was written in, and nobody has seen a
//! later incarnation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures_util::future::join_all;
use ringfence_coordinator::topology::{
    Swap, Topology, TopologyError, TopologyStore,
    server::{Founding, Observer, Step},
};

use ringfence_test_support::eventually;

use super::servers::{
    LOST_VERSIONS, RECORD, Servers, founding, join, join_with, recover_needed, successor,
};

#[tokio::test]
async fn a_record_of_an_earlier_life_is_not_used() {
    let (mut servers, joined, home) = Servers::spawn_saving(3).await.founded().await;
    let record = servers.get(home, RECORD).await;
    servers.0[home].restart().await.unwrap();
    assert_eq!(servers.get(home, RECORD).await, record);

    let swap = async |next: &Topology| joined.store.swap(joined.topology.version(), next).await;
    let next = successor(&joined.topology);
    let dead_connection = swap(&next).await.unwrap_err();
    assert!(dead_connection.is_retryable(), "{dead_connection}");
    recover_needed(swap(&next).await);
    // Nor by a process that believes that the new life is the right one.
    let mut believing = next.clone();
    believing.home.life = servers.life(home).await;
    recover_needed(swap(&believing).await);
    assert_eq!(servers.get(home, RECORD).await, record);

    let recovered = joined.store.load().await.unwrap();
    assert!(recovered.incarnation > joined.topology.incarnation);
    assert_eq!(recovered.home.life, servers.life(home).await);
}

/// Every task of an engine finds that the home has no record.
#[tokio::test]
async fn the_tasks_of_one_process_do_not_outrun_each_other_in_a_recovery() {
    let (mut servers, _joined, home) = Servers::spawn(3).await.founded().await;
    let fenced = Arc::new(AtomicUsize::new(0));
    let count = fenced.clone();
    let observer = Observer::new(move |step| {
        count.fetch_add(usize::from(matches!(step, Step::Fenced { .. })), Relaxed);
    });
    let founding = Founding {
        observer,
        ..founding()
    };
    let store = join_with(servers.seeds(), founding).await.unwrap().store;
    servers.0[home].restart().await.unwrap();
    let loaded = join_all((0..16).map(|_| store.load())).await;
    let records: Vec<_> = loaded.into_iter().map(Result::unwrap).collect();
    assert!(records.iter().all(|record| *record == records[0]));
    assert_eq!(
        fenced.load(Relaxed),
        3,
        "one attempt: each member is fenced once"
    );
}

#[tokio::test]
async fn a_record_below_its_homes_fence_is_not_used() {
    let (servers, joined, home) = Servers::spawn(3).await.founded().await;
    let record = servers.get(home, RECORD).await;
    let mut fence = joined.topology.incarnation;
    fence.number += 7;
    let key = servers.key_of_life(home, "fence").await;
    servers.set(home, &key, &fence.to_string()).await;

    let next = successor(&joined.topology);
    recover_needed(joined.store.swap(joined.topology.version(), &next).await);
    assert_eq!(servers.get(home, RECORD).await, record);
    let recovered = joined.store.load().await.unwrap();
    assert!(recovered.incarnation > fence, "{}", recovered.incarnation);
}

#[tokio::test]
async fn a_record_that_somebody_has_seen_a_newer_one_of_is_not_used() {
    let (servers, joined, home) = Servers::spawn(3).await.founded().await;
    let record = servers.get(home, RECORD).await.unwrap();
    let next = successor(&joined.topology);
    let swapped = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
    joined.store.load().await.unwrap();

    servers.set(home, RECORD, &record).await;
    let recovered = joined.store.load().await.unwrap();
    assert_eq!(recovered.version, next.version + LOST_VERSIONS);
    assert!(recovered.incarnation > next.incarnation);
}

#[tokio::test]
async fn a_swap_raises_its_homes_fence() {
    let (servers, joined, home) = Servers::spawn(3).await.founded().await;
    let mut next = successor(&joined.topology);
    next.incarnation.number += 1;
    let swap = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
    let fence = servers.key_of_life(home, "fence").await;
    assert_eq!(
        servers.get(home, &fence).await,
        Some(next.incarnation.to_string())
    );
}

#[tokio::test]
async fn a_member_that_saw_a_later_incarnation_takes_no_copy_and_is_heard() {
    let (servers, joined, home) = Servers::spawn(2).await.founded().await;
    let [other] = servers.others(home)[..] else {
        unreachable!("there are two")
    };
    let copy = servers.key_of_life(other, "copy").await;
    let held = servers.get(other, &copy).await;
    let mut fence = joined.topology.incarnation;
    fence.number += 7;
    let key = servers.key_of_life(other, "fence").await;
    servers.set(other, &key, &fence.to_string()).await;

    let next = successor(&joined.topology);
    let error = recover_needed(joined.store.swap(joined.topology.version(), &next).await);
    assert!(error.contains(&servers.addresses()[other]), "{error}");
    assert_eq!(servers.get(other, &copy).await, held);
    let recovered = joined.store.load().await.unwrap();
    assert!(recovered.incarnation > fence);
}

#[tokio::test]
async fn another_member_has_a_copy_before_a_record_is_handed_out() {
    let (servers, joined, home) = Servers::spawn(2).await.founded().await;
    let [other] = servers.others(home)[..] else {
        unreachable!("there are two")
    };
    let copy = servers.key_of_life(other, "copy").await;
    let copied = |topology: &Topology| {
        format!(
            "{} {} {}",
            topology.incarnation,
            topology.version,
            topology.encode()
        )
    };
    assert_eq!(
        servers.get(other, &copy).await,
        Some(copied(&joined.topology))
    );
    let next = successor(&joined.topology);
    let swap = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
    assert_eq!(servers.get(other, &copy).await, Some(copied(&next)));

    // Nor by a process that only reads what another wrote, and ended before it made a copy.
    let reader = join(servers.seeds()).await.unwrap();
    servers.set(other, &copy, &copied(&joined.topology)).await;
    let mut raw = servers.raw(home).await;
    let unpublished = successor(&next);
    let header = format!(
        "{} {} {} active {}",
        unpublished.incarnation, unpublished.version, unpublished.home.life, unpublished.id
    );
    let written = redis::Cmd::set(RECORD, format!("{header}\n{}", unpublished.encode()));
    written.exec_async(&mut raw).await.unwrap();
    assert_eq!(*reader.store.load().await.unwrap(), unpublished);
    assert_eq!(servers.get(other, &copy).await, Some(copied(&unpublished)));
}

#[tokio::test]
async fn a_swap_is_done_though_no_other_member_answers() {
    let (servers, joined, home) = Servers::spawn(2).await.founded().await;
    let other = servers.others(home)[0];
    servers.0[other].stop();
    let next = successor(&joined.topology);
    let swap = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
    assert_eq!(*joined.store.load().await.unwrap(), next);
}

#[tokio::test]
async fn a_member_that_came_back_empty_and_joins_again_is_pointed() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let member = servers.others(home)[0];
    servers.0[member].restart().await.unwrap();
    assert_eq!(servers.pointers().await[member], None);

    let address = &servers.addresses()[member];
    let mut next = successor(&joined.topology);
    let entry = next
        .shards
        .values_mut()
        .find(|entry| entry.address == *address)
        .unwrap();
    entry.life = servers.life(member).await;
    let swap = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
    // A member that takes longer than a handshake is pointed in the background.
    let is_pointed = async || servers.pointers().await[member] == Some(next.id.clone());
    eventually("it is pointed", is_pointed).await;
}

#[tokio::test]
async fn a_life_that_the_record_does_not_name_is_not_pointed() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let member = servers.others(home)[0];
    servers.0[member].restart().await.unwrap();
    joined.store.load().await.unwrap();
    join(servers.seeds()).await.unwrap();
    assert_eq!(servers.pointers().await[member], None);
}

#[tokio::test]
async fn a_home_that_belongs_to_another_topology_is_an_error() {
    let (mut servers, joined, home) = Servers::spawn(1).await.founded().await;
    servers.0[home].restart().await.unwrap();
    let (_servers, second, _) = servers.founded().await;
    let error = joined.store.load().await.unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
    assert!(error.to_string().contains(&second.topology.id), "{error}");
    // Not even a swap that the version alone would let through.
    let mut next = successor(&joined.topology);
    next.home = second.topology.home.clone();
    recover_needed(
        joined
            .store
            .swap(
                second.topology.version(),
                &Topology {
                    incarnation: second.topology.incarnation,
                    ..next
                },
            )
            .await,
    );
    assert_eq!(second.store.load().await.unwrap(), second.topology);
}
