//! Connections and lives.

use std::pin::pin;

use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::{
    Fixture,
    desk::{Desk, FIRST, LONG, SHORT, acquire, arm, armed_with, counters, locks, mover, nonce},
};
use ringfence_segment_lock::HashKey;

use ringfence_coordinator::{
    ids::{Epoch, Life, MapVersion},
    shard::{
        ConnectionId, CounterOp, CounterRequest, Grace, Link, LockLane, Op, Reply, ShardError,
    },
};

/// What became of a former connection's requests can be found out: no more of them come.
pub async fn connecting_ends_the_former_connection(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    desk.granted(&key, holder, LONG).await;
    let shard = fixture.shard();
    for lane in [LockLane::Work, LockLane::Renew] {
        let mut former = shard.connect_locks(lane, None).await.expect("a connection");
        let later = shard.connect_locks(lane, named(&*former)).await;
        assert_is_later(&*later.expect("a connection"), &*former);
        for _ in 0..2 {
            let release = desk.request(&key, Op::Release { nonce: holder });
            assert_ended(former.call(&[release]).await);
        }
        assert_eq!(desk.holder(&key).await, Some(holder), "{lane:?}");
    }

    let mut former = counters(fixture).await;
    let later = shard.connect_counters(named(&*former)).await;
    assert_is_later(&*later.expect("a connection"), &*former);
    for _ in 0..2 {
        let (key, map, op) = (key.clone(), MapVersion::UNKNOWN, CounterOp::ReadManifest);
        assert_ended(
            former
                .call(&[CounterRequest {
                    key,
                    map,
                    hash_key: HashKey::default(),
                    op,
                }])
                .await,
        );
    }

    let mut former = mover(fixture).await;
    let later = shard.connect_control(named(&*former)).await;
    assert_is_later(&*later.expect("a connection"), &*former);
    for _ in 0..2 {
        assert_ended(former.arm(&arm(fixture, FIRST + 1, Grace::None)).await);
    }
    // Links for rare requests may share their connection, and then they end together.
    if desk.mover.connection() == former.connection() {
        assert_ended(desk.mover.armed().await);
        desk.mover = mover(fixture).await;
    }
    let armed = desk.mover.armed().await.expect("an answer");
    assert_eq!(armed.map(|armed| armed.epoch), Some(Epoch(FIRST)));
}

/// A caller may do something else before it polls its request again.
pub async fn a_request_that_nobody_polls_keeps_no_other_waiting(fixture: &dyn Fixture) {
    let [mut one, mut other] = [mover(fixture).await, mover(fixture).await];
    let mut unpolled = pin!(one.armed());
    let first = (&mut unpolled).now_or_never();
    let answered = timeout(LONG, other.armed()).await;
    answered.expect("it comes").expect("an answer");
    match first {
        Some(answer) => answer,
        None => unpolled.await,
    }
    .expect("an answer");
}

fn named<L: Link + ?Sized>(link: &L) -> Option<(Life, ConnectionId)> {
    Some((link.life().clone(), link.connection()))
}

fn assert_is_later<L: Link + ?Sized>(later: &L, former: &L) {
    assert_eq!(later.life(), former.life());
    assert_ne!(later.connection(), former.connection());
}

fn assert_ended<T: std::fmt::Debug>(answer: Result<T, ShardError>) {
    assert!(
        matches!(answer, Err(ShardError::NoReply { .. })),
        "{answer:?}"
    );
}

/// The former connection is often one that has broken already, or that somebody else ended.
pub async fn a_former_connection_that_is_gone_is_no_error(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let former = locks(fixture).await;
    let named = named(&*former);
    drop(former);
    for _ in 0..2 {
        fixture.elapse(SHORT).await;
        let later = fixture
            .shard()
            .connect_locks(LockLane::Work, named.clone())
            .await;
        desk.link = later.expect("the shard can be reached");
        desk.granted(&desk.key("key"), nonce(), SHORT / 2).await;
    }
}

/// Lanes, and other engines, have connections of their own.
pub async fn connecting_ends_no_connection_that_is_not_named(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let former = locks(fixture).await;
    let mut others = [
        locks(fixture).await,
        fixture
            .shard()
            .connect_locks(LockLane::Renew, None)
            .await
            .expect("a connection"),
    ];
    let named = named(&*former);
    let later = fixture
        .shard()
        .connect_locks(LockLane::Work, named)
        .await
        .expect("the shard can be reached");

    let any = desk.request(&desk.key("any"), Op::Release { nonce: nonce() });
    others
        .iter()
        .for_each(|other| assert_eq!(other.life(), later.life()));
    for link in others.iter_mut().chain([&mut desk.link]) {
        let answers = link
            .call(std::slice::from_ref(&any))
            .await
            .expect("it goes on");
        assert_eq!(answers.replies, [Reply::Released { held: false }]);
    }
}

/// Shards number the connections of each life anew: the same number is not the same connection.
pub async fn a_former_connection_of_another_life_ends_none(fixture: &dyn Fixture) {
    let desk = Desk::armed(fixture, Grace::None).await;
    let any = desk.request(&desk.key("any"), Op::Release { nonce: nonce() });
    let former = locks(fixture).await;
    let (life, connection) = (former.life().clone(), former.connection());
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");

    let mut links = Vec::new();
    while links.len() < 64 {
        links.push(locks(fixture).await);
        assert_ne!(links[0].life(), &life);
    }
    let named = Some((life, connection));
    links.push(
        fixture
            .shard()
            .connect_locks(LockLane::Work, named)
            .await
            .expect("it can be reached"),
    );
    for link in &mut links {
        let answers = link
            .call(std::slice::from_ref(&any))
            .await
            .expect("it goes on");
        assert_eq!(answers.replies, [Reply::Released { held: false }]);
    }
}

/// What was meant for one life is never done to another.
pub async fn a_link_of_an_earlier_life_does_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, free, holder) = (desk.key("key"), desk.key("free"), nonce());
    desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::Full(LONG))
        .await
        .expect("a new life");

    let batch = [
        desk.request(&key, Op::Release { nonce: holder }),
        desk.request(&free, acquire(nonce(), LONG)),
    ];
    for _ in 0..2 {
        let refused = desk.link.call(&batch).await;
        let dead = matches!(
            refused,
            Err(ShardError::Unarmed | ShardError::NoReply { .. })
        );
        assert!(dead, "{refused:?}");
    }
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(desk.holder(&key).await, Some(holder));
    assert_eq!(desk.inspect(&free).await, None);
}
