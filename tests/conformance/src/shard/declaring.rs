//! Acquires by views from before a namespace was declared.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, all_slots, arm, control, incarnation,
        marked_quiet, nonce, quiet_mark,
    },
    line::queue,
    shares::of_mode,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion},
    shard::{Declare, Grace, LockMode, Reply, ShardError},
};

/// After the map at which a shard is quiet at first.
const LATER: MapVersion = MapVersion(QUIET.0 + 1);

async fn declared(fixture: &dyn Fixture, declared: MapVersion) -> Result<Duration, ShardError> {
    let declare = Declare {
        incarnation: incarnation(FIRST),
        copy: (declared.0, format!("record {declared}")),
        declared,
    };
    control(fixture).await.declare(&declare).await
}

/// In a batch, too, with acquires by the present view before and behind it.
pub async fn an_acquire_by_an_older_view_is_refused_and_writes_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let counter = desk.batch(&[]).await.counter;
    assert_eq!(
        declared(fixture, LATER).await.expect("an answer"),
        Duration::ZERO
    );
    let keys = ["a", "b", "c"].map(|name| desk.key(name));
    for (key, mode) in keys
        .iter()
        .zip([LockMode::Exclusive, LockMode::Read, LockMode::Write])
    {
        desk.declared = QUIET;
        assert_eq!(
            desk.one(key, of_mode(queue(nonce(), 1), mode)).await,
            Reply::Outdated
        );
        let found = desk.mover.inspect(key).await.expect("an answer");
        assert!(
            found.holder.is_none() && found.waiters.is_empty(),
            "{found:?}"
        );
    }
    assert_eq!(desk.batch(&[]).await.counter, counter);
    let mut request = |index: usize, declared| {
        desk.declared = declared;
        desk.request(&keys[index], queue(nonce(), 1))
    };
    let batch = [
        request(0, LATER),
        request(1, QUIET),
        request(2, MapVersion(LATER.0 + 1)),
        request(2, MapVersion::UNKNOWN),
    ];
    let replies = desk.batch(&batch).await.replies;
    let words: Vec<_> = replies.iter().map(word).collect();
    assert_eq!(words, ["granted", "outdated", "granted", "outdated"]);
    assert_eq!(desk.holder(&keys[1]).await, None);
}

/// Only to acquire depends on the view.
pub async fn what_an_older_view_holds_is_renewed_and_released(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    declared(fixture, LATER).await.expect("an answer");
    assert_eq!(
        word(&desk.renew(&key, (holder, token), LONG).await),
        "renewed"
    );
    // Nor does a repeat give it the lock again.
    assert_eq!(desk.acquire(&key, holder, LONG).await, Reply::Outdated);
    assert_eq!(word(&desk.release(&key, holder).await), "released");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
}

/// Requests by a map at which the shard is quiet are not checked.
pub async fn a_declaration_ends_the_quiet_of_older_maps(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    declared(fixture, LATER).await.expect("an answer");
    desk.declared = LATER;
    assert!(!desk.is_quiet().await);
    desk.declared = MapVersion::UNKNOWN;
    let key = desk.key("key");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
    let mark = |map| quiet_mark(FIRST, map, all_slots());
    assert!(
        !marked_quiet(fixture, &mark(QUIET))
            .await
            .expect("an answer")
    );
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);

    assert!(
        marked_quiet(fixture, &mark(LATER))
            .await
            .expect("an answer")
    );
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
    (desk.map, desk.declared) = (LATER, LATER);
    assert!(desk.is_quiet().await);
    desk.granted(&key, nonce(), LONG).await;
}

/// An equal one, or a lower one, changes nothing.
pub async fn a_declaration_is_kept_until_a_later_one(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let grace_left = declared(fixture, LATER).await.expect("an answer");
    assert!(
        !grace_left.is_zero() && grace_left <= SHORT + fixture.late(),
        "{grace_left:?}"
    );
    declared(fixture, LATER).await.expect("an answer");
    declared(fixture, QUIET).await.expect("an answer");
    fixture.elapse(PAST_SHORT).await;
    desk.declared = QUIET;
    let key = desk.key("key");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
    desk.declared = LATER;
    let holder = nonce();
    desk.granted(&key, holder, LONG).await;
    desk.release(&key, holder).await;
    let latest = MapVersion(LATER.0 + 1);
    declared(fixture, latest).await.expect("an answer");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
}

/// Armed anew, it keeps a later one.
pub async fn a_life_is_armed_with_the_declaration_of_its_record(fixture: &dyn Fixture) {
    let arms = async |epoch, declared| {
        let mut arm = arm(fixture, FIRST, Grace::None);
        (arm.epoch, arm.token_epoch) = (Epoch(epoch), Epoch(epoch));
        arm.declared = declared;
        let answer = control(fixture).await.arm(&arm).await.expect("an answer");
        assert!(answer.armed_now, "{answer:?}");
    };
    arms(FIRST, QUIET).await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
    desk.declared = QUIET;
    let holder = nonce();
    desk.granted(&key, holder, LONG).await;
    desk.release(&key, holder).await;

    // Armed anew: a later declaration stays.
    declared(fixture, LATER).await.expect("an answer");
    let mut again = arm(fixture, FIRST, Grace::None);
    (again.epoch, again.copy) = (Epoch(FIRST + 1), (LATER.0, format!("record {LATER}")));
    again.declared = QUIET;
    let answer = control(fixture).await.arm(&again).await.expect("an answer");
    assert!(answer.armed_now, "{answer:?}");
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, Reply::Outdated);
    desk.declared = LATER;
    desk.granted(&key, nonce(), LONG).await;
}

/// As other requests to the whole shard.
pub async fn a_declaration_obeys_the_fence_and_needs_an_armed_life(fixture: &dyn Fixture) {
    let refused = declared(fixture, LATER).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let declare = Declare {
        incarnation: incarnation(FIRST - 1),
        copy: (LATER.0, "an older record".into()),
        declared: LATER,
    };
    let refused = control(fixture).await.declare(&declare).await;
    assert!(
        matches!(refused, Err(ShardError::Stale { .. })),
        "{refused:?}"
    );
    desk.granted(&desk.key("key"), nonce(), LONG).await;
}
