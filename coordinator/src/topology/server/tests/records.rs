//! Swap, copy and read.

use std::sync::Arc;

use super::*;
use crate::{
    clock::BootClock,
    random::Random,
    topology::{
        TopologyStore,
        server::{Observer, ServerTopology, caller::Caller, members::Members},
    },
};

#[tokio::test]
async fn a_swap_looks_at_version_and_incarnation() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let (incarnation, version) = topology.version();
    let mut other = incarnation;
    other.engine.0 += 1;
    let before = server.contents().await;
    for expected in [
        (incarnation, version + 1),
        (incarnation, version - 1),
        (other, version),
    ] {
        let swapped = server
            .member
            .swap(expected, &active(&topology))
            .await
            .unwrap();
        assert!(matches!(swapped, Swapped::Newer(newer) if *newer == topology));
        assert_eq!(server.contents().await, before);
    }
    let swapped = server
        .member
        .swap(topology.version(), &active(&topology))
        .await
        .unwrap();
    assert!(matches!(swapped, Swapped::Done), "{swapped:?}");
}

/// Each reads the record before any of the others has written.
#[tokio::test]
async fn of_swaps_at_the_same_time_one_is_done() {
    let server = Server::spawn().await;
    let mut topology = server.claimed(1).await;
    let random = Arc::new(Random::seeded(1));
    let members: Vec<Member> = (0..8)
        .map(|_| Member::new(server.member.options(), &random))
        .collect();
    for round in 0..20 {
        let next = active(&topology);
        let swaps = members
            .iter()
            .map(|member| member.swap(topology.version(), &next));
        let swapped = futures_util::future::join_all(swaps).await;
        let done = swapped.into_iter().map(Result::unwrap);
        let done = done.filter(|swapped| matches!(swapped, Swapped::Done));
        assert_eq!(done.count(), 1, "{round}");
        topology = next;
    }
}

/// A swap that comes late, after its topology was voided and the same process claimed another.
#[tokio::test]
async fn a_swap_of_another_topology_is_refused_though_its_version_is_right() {
    let mut server = Server::spawn().await;
    let voided = server.claimed(1).await;
    assert!(server.member.void(&voided.id).await.unwrap());
    let claimed = server.claimed(2).await;
    assert_eq!(voided.version(), claimed.version());
    let before = server.contents().await;
    let swapped = server
        .member
        .swap(voided.version(), &active(&voided))
        .await
        .unwrap();
    assert!(matches!(swapped, Swapped::Unusable(_)), "{swapped:?}");
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn a_swap_of_an_incarnation_below_the_fence_is_refused() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let number = topology.incarnation.number;
    server.fence(number + 2).await;
    let before = server.contents().await;
    // Neither below the present fence, nor to one above it: the record there cannot be the base.
    let mut above = active(&topology);
    above.incarnation.number = number + 3;
    for next in [active(&topology), above] {
        let swapped = server.member.swap(topology.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swapped::Unusable(_)), "{swapped:?}");
        assert_eq!(server.contents().await, before);
    }
}

#[tokio::test]
async fn a_copy_is_for_members_only() {
    let mut server = Server::spawn().await;
    let topology = active(&server.topology(1));
    assert_eq!(
        server.member.copy(&topology).await.unwrap(),
        Copied::NotMember
    );
    assert_eq!(server.contents().await, []);
    server.joined(2).await;
    let before = server.contents().await;
    assert_eq!(
        server.member.copy(&topology).await.unwrap(),
        Copied::NotMember
    );
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn the_newest_copy_stays() {
    let server = Server::spawn().await;
    let topology = server.joined(1).await;
    let later = Topology {
        version: 9,
        ..topology.clone()
    };
    for copied in [&later, &topology] {
        assert_eq!(server.member.copy(copied).await.unwrap(), Copied::Kept);
    }
    assert_eq!(server.member.trace().await.unwrap().copy, Some(later));
}

#[tokio::test]
async fn a_copy_below_the_fence_is_refused() {
    let mut server = Server::spawn().await;
    let topology = server.joined(1).await;
    server.fence(topology.incarnation.number + 1).await;
    let before = server.contents().await;
    let copied = server.member.copy(&topology).await.unwrap();
    assert!(matches!(copied, Copied::Stale(_)), "{copied:?}");
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn a_copy_raises_the_fence_and_is_listed_for_arm_to_unlink() {
    let mut server = Server::spawn().await;
    let topology = server.joined(1).await;
    server.member.copy(&topology).await.unwrap();
    assert_eq!(
        server.member.trace().await.unwrap().fence,
        Some(topology.incarnation)
    );
    let lives: Vec<String> = ::redis::Cmd::smembers("ringfence:lives")
        .query_async(&mut server.raw)
        .await
        .unwrap();
    assert_eq!(lives, [server.life.as_str()]);
}

#[tokio::test]
async fn a_record_in_creation_is_not_handed_out() {
    let server = Server::spawn().await;
    let claimed = server.claimed(1).await;
    let (options, random) = (server.member.options(), Arc::new(Random::seeded(1)));
    let home = Arc::new(Member::new(options.clone(), &random));
    let members = Arc::new(Members::new(vec![options], ClientId(1), random.clone()));
    let caller = Arc::new(Caller {
        engine: ClientId(1),
        members,
        clock: Arc::new(BootClock),
        random,
        watch_every: Duration::from_secs(1),
        observer: Observer::default(),
    });
    let store = ServerTopology::new(claimed.clone(), home, caller);
    let loaded = store.load().await;
    assert!(
        matches!(loaded, Err(TopologyError::Unreachable { .. })),
        "{loaded:?}"
    );
    store
        .compare_and_swap(claimed.version(), &active(&claimed))
        .await
        .unwrap();
    assert_eq!(*store.load().await.unwrap(), active(&claimed));
}

#[tokio::test]
async fn a_read_brings_a_record_once() {
    let server = Server::spawn().await;
    let (_, found) = server.member.read(None).await.unwrap();
    assert!(matches!(found, Found::Nothing), "{found:?}");
    let topology = server.claimed(1).await;
    let (_, found) = server.member.read(None).await.unwrap();
    assert!(matches!(&found, Found::Record { record: Some(record), .. } if **record == topology));
    let (_, found) = server.member.read(Some(&topology)).await.unwrap();
    assert!(
        matches!(found, Found::Record { record: None, .. }),
        "{found:?}"
    );
    let (_, found) = server.member.read(Some(&active(&topology))).await.unwrap();
    assert!(
        matches!(
            found,
            Found::Record {
                record: Some(_),
                ..
            }
        ),
        "{found:?}"
    );
}
