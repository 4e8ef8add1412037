//! Fence and restore, and copies that tell of another home.

use super::*;
use crate::topology::server::answers::{Fence, Fenced};

async fn fenced(server: &Server, topology: &Topology) -> Fenced {
    let (id, n) = (&topology.id, topology.incarnation);
    server.member.fence(&server.life, id, n).await.unwrap()
}

async fn raised(server: &Server, topology: &Topology) -> Fence {
    match fenced(server, topology).await {
        Fenced::Raised(fence) => *fence,
        other => panic!("{other:?}"),
    }
}

/// The record that follows `topology` in the next incarnation.
fn later(topology: &Topology) -> Topology {
    let mut later = active(topology);
    later.incarnation.number += 1;
    later
}

#[tokio::test]
async fn raising_the_fence_answers_what_is_there_in_the_same_step() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let copied = active(&topology);
    server.member.copy(&copied).await.unwrap();
    let key = format!("ringfence:life:{}:state", server.life);
    let arm = ::redis::Cmd::hset_multiple(&key, &[("arm", 3), ("te", 9)]);
    arm.exec_async(&mut server.raw).await.unwrap();

    let fence = raised(&server, &later(&topology)).await;
    assert_eq!(fence.life, server.life);
    assert_eq!(
        (&fence.record, &fence.copy),
        (&Some(topology.clone()), &Some(copied))
    );
    assert_eq!((fence.armed, fence.epoch), (Some(Epoch(3)), Epoch(9)));
    let trace = server.member.trace().await.unwrap();
    assert_eq!(trace.fence, Some(later(&topology).incarnation));
}

#[tokio::test]
async fn an_empty_server_is_fenced_too_and_listed_for_arm_to_unlink() {
    let mut server = Server::spawn().await;
    let fence = raised(&server, &server.topology(1)).await;
    assert_eq!((fence.record, fence.copy), (None, None));
    assert_eq!((fence.armed, fence.epoch), (None, Epoch::default()));
    let lives: Vec<String> = ::redis::Cmd::smembers("ringfence:lives")
        .query_async(&mut server.raw)
        .await
        .unwrap();
    assert_eq!(lives, [server.life.as_str()]);
}

#[tokio::test]
async fn a_fence_that_is_not_below_stays() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    raised(&server, &later(&topology)).await;
    let before = server.contents().await;
    for lower in [&topology, &later(&topology)] {
        let outrun = fenced(&server, lower).await;
        assert!(matches!(outrun, Fenced::Outrun), "{outrun:?}");
        assert_eq!(server.contents().await, before);
    }
    // Two engines may choose the same number.
    let mut other = later(&topology);
    other.incarnation.engine.0 += 1;
    raised(&server, &other).await;
}

#[tokio::test]
async fn a_member_of_another_topology_is_not_fenced() {
    for pointed in [true, false] {
        let mut server = Server::spawn().await;
        let theirs = server.claimed(1).await;
        if !pointed {
            let del = ::redis::Cmd::del("ringfence:pointer");
            del.exec_async(&mut server.raw).await.unwrap();
        }
        let before = server.contents().await;
        let refused = fenced(&server, &server.topology(2)).await;
        assert!(
            matches!(&refused, Fenced::Theirs(id) if *id == theirs.id),
            "{refused:?}"
        );
        assert_eq!(server.contents().await, before);
    }
}

#[tokio::test]
async fn a_record_is_restored_behind_its_own_fence_only() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let next = later(&topology);
    let before = server.contents().await;
    assert!(!server.member.restore(&next).await.unwrap());
    assert_eq!(server.contents().await, before);

    raised(&server, &next).await;
    assert!(server.member.restore(&next).await.unwrap());
    assert_eq!(
        server.member.trace().await.unwrap().record,
        Some(next.clone())
    );

    raised(&server, &later(&next)).await;
    let before = server.contents().await;
    assert!(!server.member.restore(&next).await.unwrap());
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn a_restored_record_that_was_changed_since_stays() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let next = later(&topology);
    raised(&server, &next).await;
    assert!(server.member.restore(&next).await.unwrap());
    let changed = active(&next);
    let swapped = server.member.swap(next.version(), &changed).await.unwrap();
    assert!(matches!(swapped, Swapped::Done), "{swapped:?}");
    let before = server.contents().await;
    assert!(!server.member.restore(&next).await.unwrap());
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn nothing_is_fenced_or_restored_in_another_life() {
    let mut server = Server::spawn().await;
    let mut topology = server.topology(1);
    server.server.restart().await.unwrap();
    topology.home.life = server.life.clone();
    let (id, n) = (&topology.id, topology.incarnation);
    // The first finds a dead connection.
    let _ = server.member.fence(&server.life, id, n).await;
    let outrun = server.member.fence(&server.life, id, n).await.unwrap();
    assert!(matches!(outrun, Fenced::Outrun), "{outrun:?}");
    assert!(!server.member.restore(&topology).await.unwrap());
    let trace = server.member.trace().await.unwrap();
    assert_eq!((trace.fence, trace.record), (None, None));
}

#[tokio::test]
async fn a_copy_tells_a_member_of_the_records_home() {
    let server = Server::spawn().await;
    let topology = server.joined(1).await;
    let mut moved = later(&topology);
    moved.home.address = "redis://elsewhere:1/0".into();
    assert_eq!(server.member.copy(&moved).await.unwrap(), Copied::Kept);
    let pointer = server.member.trace().await.unwrap().pointer;
    assert_eq!(pointer, Some(Pointer::to(&moved)));
    // Not by one that is stale.
    assert!(matches!(
        server.member.copy(&topology).await.unwrap(),
        Copied::Stale(_)
    ));
    let pointer = server.member.trace().await.unwrap().pointer;
    assert_eq!(pointer, Some(Pointer::to(&moved)));
}
