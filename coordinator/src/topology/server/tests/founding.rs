//! Claim, join, leave and void.

use super::*;

#[tokio::test]
async fn a_claim_takes_only_what_has_neither_pointer_nor_record() {
    for key in ["ringfence:pointer", "ringfence:topology"] {
        let mut server = Server::spawn().await;
        ::redis::Cmd::set(key, "there")
            .exec_async(&mut server.raw)
            .await
            .unwrap();
        let before = server.contents().await;
        let topology = server.topology(1);
        assert_eq!(server.member.claim(&topology).await.unwrap(), Claim::Taken);
        assert_eq!(server.contents().await, before);
    }
}

#[tokio::test]
async fn a_claim_below_the_fence_is_refused() {
    let mut server = Server::spawn().await;
    let topology = server.topology(1);
    server.fence(topology.incarnation.number + 1).await;
    assert_eq!(server.member.claim(&topology).await.unwrap(), Claim::Taken);
    assert_eq!(server.contents().await.len(), 1);
    server.fence(topology.incarnation.number).await;
    assert_eq!(
        server.member.claim(&topology).await.unwrap(),
        Claim::Claimed
    );
}

#[tokio::test]
async fn a_claim_in_another_life_than_the_record_names_is_refused() {
    let mut server = Server::spawn().await;
    let mut topology = server.topology(1);
    topology.home.life = Life::new("earlier:life");
    assert_eq!(server.member.claim(&topology).await.unwrap(), Claim::Taken);
    assert_eq!(server.contents().await, []);
}

#[tokio::test]
async fn a_pointer_that_is_there_stays() {
    let mut server = Server::spawn().await;
    let [ours, theirs] = [1, 2].map(|id| Pointer::to(&server.topology(id)));
    let life = server.life.clone();
    assert_eq!(
        server.member.join(&ours, &life).await.unwrap(),
        Join::Joined
    );
    let before = server.contents().await;
    assert_eq!(
        server.member.join(&theirs, &life).await.unwrap(),
        Join::Theirs
    );
    assert_eq!(
        server.member.join(&ours, &life).await.unwrap(),
        Join::Joined
    );
    assert_eq!(
        server.member.leave(&theirs.id).await.unwrap(),
        Leave::NotThere
    );
    assert_eq!(server.contents().await, before);
    assert_eq!(server.member.leave(&ours.id).await.unwrap(), Leave::Left);
    assert_eq!(server.contents().await, []);
}

#[tokio::test]
async fn a_topology_that_was_in_use_is_not_left() {
    for is_armed in [false, true] {
        let mut server = Server::spawn().await;
        let topology = server.joined(1).await;
        let key = format!("ringfence:life:{}:state", server.life);
        match is_armed {
            true => ::redis::Cmd::hset(key, "arm", 1)
                .exec_async(&mut server.raw)
                .await
                .unwrap(),
            false => drop(server.member.copy(&topology).await.unwrap()),
        }
        let before = server.contents().await;
        let left = server.member.leave(&topology.id).await.unwrap();
        assert_eq!(left, Leave::InUse, "{is_armed}");
        assert_eq!(server.contents().await, before);
    }
}

#[tokio::test]
async fn a_void_takes_only_its_own_and_only_what_nobody_can_use() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let before = server.contents().await;
    assert!(!server.member.void(&server.topology(2).id).await.unwrap());
    assert_eq!(server.contents().await, before);

    server
        .member
        .swap(topology.version(), &active(&topology))
        .await
        .unwrap();
    let before = server.contents().await;
    assert!(!server.member.void(&topology.id).await.unwrap());
    assert_eq!(server.contents().await, before);
}

#[tokio::test]
async fn a_void_leaves_another_ones_pointer() {
    let mut server = Server::spawn().await;
    let topology = server.claimed(1).await;
    let theirs = Pointer::to(&server.topology(2)).to_string();
    ::redis::Cmd::set("ringfence:pointer", &theirs)
        .exec_async(&mut server.raw)
        .await
        .unwrap();
    assert!(server.member.void(&topology.id).await.unwrap());
    assert_eq!(server.contents().await.len(), 1);
}
