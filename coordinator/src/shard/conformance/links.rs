//! Connections and lives.

use super::{
    Fixture,
    desk::{Desk, FIRST, LONG, SHORT, acquire, armed_with, connect, nonce},
};
use crate::{
    ids::MapVersion,
    shard::{Grace, Lane, Op, ShardError},
};

/// What became of a former connection's requests can be found out: no more of them come.
pub async fn connecting_ends_the_former_connection(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    desk.granted(&key, holder, LONG).await;
    for lane in [Lane::Work, Lane::Renew, Lane::Control] {
        let mut former = connect(fixture, lane).await;
        let named = Some((former.life().clone(), former.connection()));
        let later = fixture
            .shard()
            .connect(lane, named)
            .await
            .expect("the shard can be reached");
        assert_eq!(later.life(), former.life());
        assert_ne!(later.connection(), former.connection());

        for _ in 0..2 {
            let ended = former
                .call(&[desk.request(&key, Op::Release { nonce: holder })])
                .await;
            assert!(
                matches!(ended, Err(ShardError::NoReply { .. })),
                "{lane:?}: {ended:?}"
            );
        }
        assert_eq!(desk.holder(&key).await, Some(holder), "{lane:?}");
    }
}

/// The former connection is often one that has broken already, or that somebody else ended.
pub async fn a_former_connection_that_is_gone_is_no_error(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let former = connect(fixture, Lane::Work).await;
    let named = Some((former.life().clone(), former.connection()));
    drop(former);
    for _ in 0..2 {
        fixture.elapse(SHORT).await;
        let later = fixture.shard().connect(Lane::Work, named.clone()).await;
        desk.link = later.expect("the shard can be reached");
        desk.granted(&desk.key("key"), nonce(), SHORT / 2).await;
    }
}

/// Lanes, and other engines, have connections of their own.
pub async fn connecting_ends_no_connection_that_is_not_named(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let former = connect(fixture, Lane::Work).await;
    let mut others = [
        connect(fixture, Lane::Work).await,
        connect(fixture, Lane::Renew).await,
    ];
    let named = Some((former.life().clone(), former.connection()));
    let later = fixture
        .shard()
        .connect(Lane::Work, named)
        .await
        .expect("the shard can be reached");

    let any = desk.key("any");
    others
        .iter()
        .for_each(|other| assert_eq!(other.life(), later.life()));
    for link in others.iter_mut().chain([&mut desk.link]) {
        assert_eq!(link.inspect(&any).await.expect("it goes on").holder, None);
    }
}

/// Shards number the connections of each life anew: the same number is not the same connection.
pub async fn a_former_connection_of_another_life_ends_none(fixture: &dyn Fixture) {
    let any = Desk::armed(fixture, Grace::None).await.key("any");
    let former = connect(fixture, Lane::Work).await;
    let (life, connection) = (former.life().clone(), former.connection());
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");

    let mut links = Vec::new();
    while links.len() < 64 {
        links.push(connect(fixture, Lane::Work).await);
        assert_ne!(links[0].life(), &life);
    }
    let named = Some((life, connection));
    links.push(
        fixture
            .shard()
            .connect(Lane::Work, named)
            .await
            .expect("it can be reached"),
    );
    for link in &mut links {
        assert_eq!(link.inspect(&any).await.expect("it goes on").holder, None);
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
