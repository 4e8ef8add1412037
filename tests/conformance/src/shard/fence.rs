//! Token epochs, and topologies that are older than the shard has seen.

use super::{
    Fixture,
    desk::{
        Desk, FIRST, LONG, QUIET, all_slots, arm, armed_with, control, incarnation, marked_quiet,
        nonce, quiet_mark,
    },
};
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Incarnation, Token},
    shard::{Grace, ShardError},
};

async fn raise(
    fixture: &dyn Fixture,
    incarnation: Incarnation,
    epoch: u64,
) -> Result<(), ShardError> {
    control(fixture)
        .await
        .raise(incarnation, Epoch(epoch))
        .await
}

fn assert_stale<T: std::fmt::Debug>(refused: Result<T, ShardError>, fence: Incarnation) {
    let stale =
        matches!(&refused, Err(ShardError::Stale { fence: its }) if *its == fence.to_string());
    assert!(stale, "{refused:?}, fence {fence}");
}

/// A new token epoch starts above the highest counter of the last one.
pub async fn a_raise_makes_tokens_rise_above_all_earlier(fixture: &dyn Fixture) {
    for (mut desk, epoch) in Desk::both_ways(fixture).await.into_iter().zip(FIRST + 1..) {
        fixture.set_counter(1 << 34).await;
        let earlier = desk.granted(&desk.key("one"), nonce(), LONG).await;
        raise(fixture, incarnation(FIRST), epoch)
            .await
            .expect("it is armed");
        let later = desk.granted(&desk.key("two"), nonce(), LONG).await;
        assert_eq!(later, Token::new(Epoch(epoch), 1));
        assert!(later > earlier);
    }
}

/// Tokens have nothing to do with slots.
pub async fn a_raise_keeps_the_quiet(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    raise(fixture, incarnation(FIRST), FIRST + 1)
        .await
        .expect("it is armed");
    assert!(desk.is_quiet().await);
}

/// A raise that comes late, or twice, does not make tokens fall or repeat.
pub async fn a_lower_raise_changes_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        for epoch in [0, FIRST - 1, FIRST] {
            let earlier = desk.granted(&desk.key("key"), nonce(), LONG).await;
            raise(fixture, incarnation(FIRST), epoch)
                .await
                .expect("it is armed");
            let later = desk
                .granted(&desk.key(epoch.to_string()), nonce(), LONG)
                .await;
            assert_eq!(later, Token::new(earlier.epoch(), earlier.counter() + 1));
            let found = desk.inspect(&desk.key("key")).await.expect("it is held");
            desk.release(&desk.key("key"), found.nonce).await;
        }
    }
}

/// An engine with an old record arms nothing.
pub async fn a_stale_arming_is_refused_and_writes_nothing(fixture: &dyn Fixture) {
    // Even an unarmed member has a fence.
    let unarmed = marked_quiet(fixture, &quiet_mark(FIRST + 1, QUIET, all_slots())).await;
    assert!(matches!(unarmed, Err(ShardError::Unarmed)), "{unarmed:?}");
    assert_stale(
        armed_with(fixture, FIRST, Grace::None).await,
        incarnation(FIRST + 1),
    );

    let refused = control(fixture)
        .await
        .raise(incarnation(FIRST + 1), Epoch(9))
        .await;
    assert!(
        matches!(refused, Err(ShardError::Unarmed)),
        "still: {refused:?}"
    );
    assert!(
        armed_with(fixture, FIRST + 1, Grace::None)
            .await
            .expect("not stale")
            .armed_now
    );
}

/// An engine with an old record does not know which slots are here.
pub async fn a_stale_quiet_mark_is_refused_and_writes_nothing(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    let stale = quiet_mark(FIRST - 1, QUIET, all_slots());
    assert_stale(marked_quiet(fixture, &stale).await, incarnation(FIRST));
    assert!(desk.is_quiet().await, "it was quiet before");

    let stale = quiet_mark(
        FIRST - 1,
        ringfence_coordinator::ids::MapVersion(QUIET.0 + 1),
        all_slots(),
    );
    assert_stale(marked_quiet(fixture, &stale).await, incarnation(FIRST));
    assert!(desk.is_quiet().await, "it was quiet before");
    desk.map = stale.map;
    assert!(!desk.is_quiet().await);
}

/// An engine with an old record may hold an epoch that was given to another since.
pub async fn a_stale_raise_is_refused_and_writes_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let earlier = desk.granted(&desk.key("one"), nonce(), LONG).await;
        let refused = raise(fixture, incarnation(FIRST - 1), FIRST + 1).await;
        assert_stale(refused, incarnation(FIRST));
        let later = desk.granted(&desk.key("two"), nonce(), LONG).await;
        assert_eq!(later, Token::new(earlier.epoch(), earlier.counter() + 1));
    }
}

/// Incarnations are compared as pairs, and the shard keeps the greatest it was shown.
pub async fn whatever_carries_an_incarnation_raises_the_fence(fixture: &dyn Fixture) {
    Desk::armed(fixture, Grace::None).await;
    let by = |number, engine| Incarnation {
        number,
        engine: ClientId(engine),
    };
    assert_stale(raise(fixture, by(FIRST, 0), 0).await, by(FIRST, 1));
    raise(fixture, by(FIRST, u128::MAX), 0)
        .await
        .expect("a greater engine");
    assert_stale(raise(fixture, by(FIRST, 2), 0).await, by(FIRST, u128::MAX));
    raise(fixture, by(FIRST + 11, 0), 0)
        .await
        .expect("a greater number");
    assert_stale(
        raise(fixture, by(FIRST + 10, 9), 0).await,
        by(FIRST + 11, 0),
    );

    let (map, slots) = (QUIET, Vec::new());
    let mark = ringfence_coordinator::shard::MarkQuiet {
        incarnation: by(FIRST + 12, 0),
        copy: (FIRST + 12, "record".into()),
        map,
        slots,
    };
    marked_quiet(fixture, &mark)
        .await
        .expect("a greater number");
    assert_stale(
        raise(fixture, by(FIRST + 11, 0), 0).await,
        by(FIRST + 12, 0),
    );

    let mut late = arm(fixture, FIRST + 13, Grace::None);
    late.epoch = Epoch(FIRST);
    let answer = control(fixture).await.arm(&late).await;
    assert!(!answer.expect("a greater number").armed_now);
    assert_stale(
        raise(fixture, by(FIRST + 12, 0), 0).await,
        incarnation(FIRST + 13),
    );
}
