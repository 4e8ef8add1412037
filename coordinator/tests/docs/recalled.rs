//! Locks that a connection wrote: it changes them without a read.

use std::{sync::Arc, time::Duration};

use ringfence_conformance::shard::Fixture as _;
use ringfence_coordinator::{
    ids::{Epoch, Token},
    shard::{
        LockLane, LockLink, Op, Reply, Shard,
        docs::{Commit, Committed, Draw, Expected, Name, Store, TokenChange, Write},
    },
};
use tokio::time::timeout;

use super::races::{LONG, acquire, arm, key, nonce, request};
use crate::{docs_fixture::Docs, etcd_fixture::OnEtcd, zookeeper_fixture::OnZookeeper};

/// The limit of the wait for a glance.
const SOON: Duration = Duration::from_secs(120);

async fn take(link: &mut dyn LockLink, client: u64) -> Option<Token> {
    take_of(link, 0, client).await
}

async fn give_back(link: &mut dyn LockLink, client: u64) {
    give_back_of(link, 0, client).await;
}

async fn take_of(link: &mut dyn LockLink, which: usize, client: u64) -> Option<Token> {
    let asked = [request(&key(which), acquire(nonce(client, 1), LONG, false))];
    match link.call(&asked).await.unwrap().replies[0] {
        Reply::Granted { token, .. } => Some(token),
        Reply::Held { .. } => None,
        ref other => panic!("{other:?}"),
    }
}

async fn give_back_of(link: &mut dyn LockLink, which: usize, client: u64) {
    let nonce = nonce(client, 1);
    let asked = [request(&key(which), Op::Release { nonce })];
    assert_eq!(
        link.call(&asked).await.unwrap().replies,
        [Reply::Released { held: true }]
    );
}

async fn connect(shard: &dyn Shard) -> Box<dyn LockLink> {
    shard.connect_locks(LockLane::Work, None).await.unwrap()
}

#[tokio::test]
async fn a_lock_that_a_connection_wrote_is_not_read_again() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    let mut link = connect(&*docs.shard()).await;
    take(&mut *link, 1).await.expect("it is free");
    let reads = docs.reads();
    for _ in 0..3 {
        give_back(&mut *link, 1).await;
        take(&mut *link, 1).await.expect("it is free");
    }
    assert_eq!(docs.reads(), reads);
}

/// Two connections draw tokens in their commits, for a lock each.
#[tokio::test]
async fn no_token_is_granted_twice() {
    let docs = Docs::new().await;
    docs.slow_down().await;
    arm(&*docs.shard(), docs.topology()).await;
    let shard = docs.shard();
    let tokens = async |which: usize| {
        let (mut link, mut tokens) = (connect(&*shard).await, Vec::new());
        for _ in 0..20 {
            let token = take_of(&mut *link, which, which as u64).await;
            tokens.push(token.expect("it is free"));
            give_back_of(&mut *link, which, which as u64).await;
        }
        tokens
    };
    let (mut all, others) = tokio::join!(tokens(1), tokens(2));
    all.extend(others);
    all.sort_unstable();
    assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
}

/// What a connection wrote is no proof of what is there.
async fn others_are_seen(one: &dyn Shard, other: &dyn Shard) {
    let (mut one, mut other) = (connect(one).await, connect(other).await);
    let mut last = Token::default();
    let mut rises = |token: Option<Token>| {
        let token = token.expect("it is free");
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    for _ in 0..3 {
        for _ in 0..3 {
            rises(take(&mut *one, 1).await);
            give_back(&mut *one, 1).await;
        }
        rises(take(&mut *other, 2).await);
        assert_eq!(take(&mut *one, 1).await, None);
        give_back(&mut *other, 2).await;
    }
}

#[tokio::test]
async fn others_are_seen_on_documents() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    others_are_seen(&*docs.shard(), &*docs.shard()).await;
}

#[tokio::test]
async fn others_are_seen_on_etcd() {
    let etcd = OnEtcd::new().await;
    arm(&*etcd.shard(), etcd.topology()).await;
    others_are_seen(&*etcd.process(), &*etcd.process()).await;
}

#[tokio::test]
async fn others_are_seen_on_zookeeper() {
    let zookeeper = OnZookeeper::new().await;
    arm(&*zookeeper.shard(), zookeeper.topology()).await;
    others_are_seen(&*zookeeper.process(), &*zookeeper.process()).await;
}

/// Tokens that others drew since the glance are not granted again.
async fn a_commit_draws_no_token_twice(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let (first, more) = (Token::new(Epoch(5), 0), 3);
    let token = |count| Token::new(Epoch(5), count);
    let draw = |after| Draw {
        head: Expected::Absent,
        after,
        more,
        whole: more,
    };
    let commit = |version, tokens| Commit {
        checks: Vec::new(),
        writes: Vec::new(),
        version,
        tokens,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    };
    let mut one = one.open(None).await.unwrap();
    let mut other = other.open(None).await.unwrap();
    let begin = commit(1, TokenChange::Exactly(first));
    assert_eq!(one.commit(&begin).await.unwrap(), Committed::Done);
    // The clock has to be seen to go on, first.
    let mut drawn = 0;
    let glancing = timeout(SOON, async {
        loop {
            one.read(&[], Some(draw(token(drawn)))).await.unwrap();
            drawn += more;
            if let Some(glance) = one.glance(true).await {
                return glance.last;
            }
        }
    });
    let last = glancing.await.expect("a glance");
    assert_eq!(last, token(drawn));
    let next = |version, after: Token| Commit {
        writes: vec![Write {
            name: Name::Slots(7),
            expected: Expected::Any,
            content: "new".into(),
            ends_ms: None,
        }],
        ..commit(
            version,
            TokenChange::Next {
                after,
                last: token(after.counter() + 1),
            },
        )
    };
    other.read(&[], Some(draw(last))).await.unwrap();
    let refused = one.commit(&next(2, last)).await.unwrap();
    assert_eq!(refused, Committed::Refused { stale: Vec::new() });
    assert!(one.glance(true).await.is_none(), "others draw");
    let found = one.read(&[Name::Slots(7)], None).await.unwrap();
    assert_eq!(
        (&found.documents[..], found.last),
        (&[None][..], token(drawn + more))
    );
    let done = one.commit(&next(3, found.last)).await.unwrap();
    assert_eq!(done, Committed::Done);
    let found = other.read(&[], None).await.unwrap();
    assert_eq!(found.last, token(drawn + more + 1));
}

#[tokio::test]
async fn a_commit_on_etcd_draws_no_token_twice() {
    use ringfence_conformance::store::Fixture as _;
    let etcd = OnEtcd::bare().await;
    a_commit_draws_no_token_twice(etcd.store(), etcd.store()).await;
}

#[tokio::test]
async fn a_commit_on_zookeeper_draws_no_token_twice() {
    use ringfence_conformance::store::Fixture as _;
    let zookeeper = OnZookeeper::bare().await;
    a_commit_draws_no_token_twice(zookeeper.store(), zookeeper.store()).await;
}
