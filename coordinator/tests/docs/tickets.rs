//! Waiters that ask again: they do not get in the way of each other, nor of the holder.

use std::time::Duration;

use ringfence_conformance::{shard::Fixture, store::Fixture as _};
use ringfence_coordinator::{
    ids::Nonce,
    shard::{
        LockLane, LockLink, Reply,
        docs::{Document, Name, Store},
    },
};

use super::races::{LONG, acquire, arm, key, nonce, renewal, request};
use crate::{
    docs_fixture::Docs, etcd_fixture::OnEtcd, mariadb_fixture::Maria, postgres_fixture::Postgres,
    zookeeper_fixture::OnZookeeper,
};

fn waiter(place: u32) -> Nonce {
    nonce(2 + u64::from(place), 1)
}

async fn queues(link: &mut dyn LockLink, nonce: Nonce) -> u32 {
    let asked = [request(&key(0), acquire(nonce, LONG, true))];
    match link.call(&asked).await.unwrap().replies[0] {
        Reply::Held {
            position: Some(place),
            ..
        } => place,
        ref other => panic!("{other:?}"),
    }
}

async fn found(store: &dyn Store, name: Name) -> Option<Document> {
    let mut session = store.open(None).await.unwrap();
    let found = session.read(&[name], None).await.unwrap();
    found.documents.into_iter().next().flatten()
}

/// Otherwise a hundred waiters would overtake the holder's renewals and its release.
async fn who_asks_again_leaves_the_lock_as_it_is(fixture: &dyn Fixture, store: &dyn Store) {
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let mut links = Vec::new();
    for _ in 0..3 {
        links.push(shard.connect_locks(LockLane::Work, None).await.unwrap());
    }
    let [holder, waiters @ ..] = &mut links[..] else {
        unreachable!("there are three")
    };
    let take = [request(&key(0), acquire(nonce(1, 1), LONG, false))];
    let taken = holder.call(&take).await.unwrap().replies;
    let Reply::Granted { token, .. } = taken[0] else {
        panic!("{taken:?}");
    };
    for (place, link) in (0..).zip(&mut *waiters) {
        assert_eq!(queues(&mut **link, waiter(place)).await, place);
    }
    for _ in 0..3 {
        fixture.elapse(Duration::from_millis(100)).await;
        let renewal = [request(&key(0), renewal(token, LONG))];
        let renewed = holder.call(&renewal).await.unwrap().replies;
        assert!(matches!(renewed[0], Reply::Renewed { .. }), "{renewed:?}");
        let before = found(store, Name::Lock(key(0))).await;
        for (place, link) in (0..).zip(&mut *waiters) {
            assert_eq!(queues(&mut **link, waiter(place)).await, place);
        }
        assert_eq!(found(store, Name::Lock(key(0))).await, before);
    }
    for place in 0..waiters.len() as u32 {
        let ticket = Name::Ticket(key(0), waiter(place));
        assert!(found(store, ticket).await.is_some(), "{place} asked again");
    }
}

#[tokio::test]
async fn who_asks_again_leaves_the_lock_as_it_is_on_documents() {
    let docs = Docs::new().await;
    who_asks_again_leaves_the_lock_as_it_is(&docs, &*docs.store()).await;
}

#[tokio::test]
async fn who_asks_again_leaves_the_lock_as_it_is_on_postgresql() {
    let postgres = Postgres::new().await;
    who_asks_again_leaves_the_lock_as_it_is(&postgres, &*postgres.store()).await;
}

#[tokio::test]
async fn who_asks_again_leaves_the_lock_as_it_is_on_mariadb() {
    let maria = Maria::new().await;
    who_asks_again_leaves_the_lock_as_it_is(&maria, &*maria.store()).await;
}

#[tokio::test]
async fn who_asks_again_leaves_the_lock_as_it_is_on_etcd() {
    let etcd = OnEtcd::new().await;
    who_asks_again_leaves_the_lock_as_it_is(&etcd, &*etcd.store()).await;
}

#[tokio::test]
async fn who_asks_again_leaves_the_lock_as_it_is_on_zookeeper() {
    let zookeeper = OnZookeeper::new().await;
    who_asks_again_leaves_the_lock_as_it_is(&zookeeper, &*zookeeper.store()).await;
}
