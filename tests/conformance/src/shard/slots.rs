//! Slots that are elsewhere, and shards that need not look.

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, acquire, all_open_but, all_slots, arm,
        armed_with, control, marked_quiet, nonce, quiet_mark, renew,
    },
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::LockKey,
    shard::{Grace, Op, Reply, ShardError},
};

/// A desk at a shard where the slot of the key called `gone` is shut.
pub(super) async fn shut_desk(fixture: &dyn Fixture, grace: Grace) -> (Desk, LockKey) {
    let desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let gone = desk.key("gone");
    let mut arm = arm(fixture, FIRST, grace);
    arm.slots = all_open_but(gone.slot());
    control(fixture)
        .await
        .arm(&arm)
        .await
        .expect("it was not armed");
    (desk, gone)
}

/// A key of any other slot.
pub(super) fn elsewhere(desk: &Desk, key: &LockKey) -> LockKey {
    let mut others = (0..).map(|at: u32| desk.key(at.to_string()));
    others
        .find(|other| other.slot() != key.slot())
        .expect("keys spread over slots")
}

/// A request to the wrong shard is told so, and since which epoch.
pub async fn a_shut_slot_answers_moved_with_its_epoch(fixture: &dyn Fixture) {
    let (mut desk, gone) = shut_desk(fixture, Grace::None).await;
    let moved = Reply::Moved { epoch: Epoch(3) };
    let claim = (nonce(), Token::new(Epoch(FIRST), 9));
    assert_eq!(desk.acquire(&gone, nonce(), LONG).await, moved);
    assert_eq!(desk.renew(&gone, claim, LONG).await, moved);
    assert_eq!(desk.inspect(&gone).await, None);

    let other = elsewhere(&desk, &gone);
    let batch = [
        desk.request(&gone, acquire(nonce(), LONG)),
        desk.request(&other, acquire(nonce(), LONG)),
        desk.request(&gone, renew(claim.0, claim.1, LONG)),
    ];
    let replies = desk.batch(&batch).await.replies;
    assert_eq!(
        replies.iter().map(word).collect::<Vec<_>>(),
        ["moved", "granted", "moved"]
    );
}

/// Grace is for keys that are here.
pub async fn a_shut_slot_is_moved_in_grace_too(fixture: &dyn Fixture) {
    let (mut desk, gone) = shut_desk(fixture, Grace::Full(LONG)).await;
    let moved = Reply::Moved { epoch: Epoch(3) };
    let claim = (nonce(), Token::new(Epoch(FIRST), 9));
    assert_eq!(desk.acquire(&gone, nonce(), LONG).await, moved);
    assert_eq!(desk.renew(&gone, claim, LONG).await, moved);
    assert_eq!(desk.inspect(&gone).await, None);
    assert_eq!(
        word(&desk.acquire(&elsewhere(&desk, &gone), nonce(), LONG).await),
        "grace"
    );
}

/// A release may come to the shard a slot has left.
pub async fn a_shut_slot_still_gives_back(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (gone, holder) = (desk.key("gone"), nonce());
    let token = desk.granted(&gone, holder, LONG).await;
    fixture.restart().await;
    let mut arm = arm(fixture, FIRST + 1, Grace::Full(LONG));
    arm.slots = all_open_but(gone.slot());
    control(fixture).await.arm(&arm).await.expect("a new life");

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(
        word(&desk.renew(&gone, (holder, token), LONG).await),
        "moved"
    );
    assert_eq!(word(&desk.release(&gone, nonce()).await), "gone");
    assert_eq!(word(&desk.release(&gone, holder).await), "released");
    assert_eq!(desk.inspect(&gone).await, None);
}

/// Quiet is set for one map version, by an engine that knows that version.
pub async fn a_shard_is_quiet_only_after_a_mark_and_only_at_its_version(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (before, after) = (MapVersion(QUIET.0 - 1), MapVersion(QUIET.0 + 1));
    for map in [MapVersion::UNKNOWN, before, QUIET, after] {
        desk.map = map;
        assert!(!desk.is_quiet().await, "{map}: not marked");
    }
    for marked_at in [QUIET, after] {
        let quiet = marked_quiet(fixture, &quiet_mark(FIRST, marked_at, all_slots())).await;
        assert!(quiet.expect("it is armed"));
        for map in [MapVersion::UNKNOWN, before, QUIET, after] {
            desk.map = map;
            assert_eq!(
                desk.is_quiet().await,
                map == marked_at,
                "{map} at {marked_at}"
            );
        }
    }
}

/// Engines that have not heard of a change do not slow down those that have.
pub async fn a_quiet_mark_of_an_older_map_changes_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let older = MapVersion(QUIET.0 - 1);
    let now = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
    assert!(now.expect("it is armed"));
    for map in [older, MapVersion::UNKNOWN] {
        let late = marked_quiet(fixture, &quiet_mark(FIRST, map, all_slots())).await;
        assert!(!late.expect("it is armed"), "{map}");
    }
    desk.map = QUIET;
    assert!(desk.is_quiet().await);
}

/// Quiet implies that every slot of that version is open.
pub async fn a_quiet_mark_fails_over_a_shut_slot(fixture: &dyn Fixture) {
    let (mut desk, gone) = shut_desk(fixture, Grace::None).await;
    desk.map = QUIET;
    let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
    assert!(!quiet.expect("it is armed"));
    assert!(!desk.is_quiet().await);
    assert_eq!(word(&desk.acquire(&gone, nonce(), LONG).await), "moved");

    let mut open = all_slots();
    open.retain(|slot| *slot != gone.slot());
    assert!(
        marked_quiet(fixture, &quiet_mark(FIRST, QUIET, open))
            .await
            .expect("it is armed")
    );
    assert!(desk.is_quiet().await);
}

/// Quiet implies that no timer runs.
pub async fn a_quiet_mark_fails_in_grace(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    desk.map = QUIET;
    let mark = quiet_mark(FIRST, QUIET, all_slots());
    assert!(!marked_quiet(fixture, &mark).await.expect("it is armed"));
    assert_eq!(
        word(&desk.acquire(&desk.key("key"), nonce(), LONG).await),
        "grace"
    );

    fixture.elapse(PAST_SHORT).await;
    assert!(
        !desk.is_quiet().await,
        "the mark failed, and is not made later"
    );
    assert!(marked_quiet(fixture, &mark).await.expect("it is armed"));
    assert!(desk.is_quiet().await);
}

/// A quiet mark that fails has found out something.
pub async fn a_failed_quiet_mark_ends_the_quiet(fixture: &dyn Fixture) {
    let (mut desk, gone) = shut_desk(fixture, Grace::None).await;
    desk.map = QUIET;
    let open = vec![elsewhere(&desk, &gone).slot()];
    assert!(
        marked_quiet(fixture, &quiet_mark(FIRST, QUIET, open))
            .await
            .expect("it is armed")
    );
    assert!(desk.is_quiet().await);

    let all = quiet_mark(FIRST, QUIET, all_slots());
    assert!(!marked_quiet(fixture, &all).await.expect("it is armed"));
    assert!(!desk.is_quiet().await);
}

/// Quiet does not outlive the slots it was said of.
pub async fn a_new_life_is_not_quiet(fixture: &dyn Fixture) {
    let [_, _quiet] = Desk::both_ways(fixture).await;
    fixture.restart().await;
    let mut desk = Desk::open(fixture, QUIET).await;
    let request = desk.request(&desk.key("key"), acquire(nonce(), LONG));
    let refused = desk.link.call(&[request]).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");

    armed_with(fixture, FIRST + 1, Grace::Full(LONG))
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, QUIET).await;
    assert!(!desk.is_quiet().await);
    assert_eq!(
        word(&desk.acquire(&desk.key("key"), nonce(), LONG).await),
        "grace"
    );
}

/// The short way is a short way to the same place.
pub async fn quiet_and_full_path_answer_alike(fixture: &dyn Fixture) {
    let mut heard = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let (key, [first, second]) = (desk.key("key"), [(); 2].map(|()| nonce()));
        let any = Token::new(Epoch(FIRST), 1);
        let ops = [
            renew(first, any, LONG),
            Op::Release { nonce: first },
            acquire(first, SHORT),
            acquire(first, SHORT),
            acquire(second, LONG),
            renew(second, any, LONG),
            renew(first, any, SHORT),
            Op::Release { nonce: second },
            acquire(second, LONG),
        ];
        let mut words = Vec::new();
        for round in 0..3 {
            for op in &ops {
                let request = desk.request(&key, op.clone());
                words.push(word(&desk.batch(&[request]).await.replies[0]));
            }
            if round == 0 {
                fixture.elapse(PAST_SHORT).await;
            } else {
                let batch = ops.clone().map(|op| desk.request(&key, op));
                words.extend(desk.batch(&batch).await.replies.iter().map(word));
                desk.release(&key, first).await;
            }
        }
        heard.push(words);
    }
    assert_eq!(heard[0], heard[1]);
}
