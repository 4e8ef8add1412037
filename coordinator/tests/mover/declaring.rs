//! A namespace gets replicas while processes use the ring, with views from before and after.

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::{
    engine::{AcquireError, Engine, Guard, Wait},
    mover::NamespaceError,
    shard::Effect,
};
use ringfence_ring::Replicas;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    lockers::{Lockers, acquire, engine},
    replicas::{declare, ledger},
    replicated::{ask, records},
    stage::Stage,
};

const SECOND: Duration = Duration::from_secs(1);

fn asks(engine: &Engine, key: &'static str, wait: Wait) -> JoinHandle<Result<Guard, AcquireError>> {
    let engine = engine.clone();
    tokio::spawn(async move { ask(&engine, key, wait).await })
}

/// Declares the namespace, and opens the slots of its replicas.
async fn declared(stage: &Arc<Stage>) {
    declare(stage).await.unwrap();
    stage.resize().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_with_an_older_view_acquires_nothing_until_it_has_the_present_one() {
    let stage = Stage::new(3).await;
    let (old, new) = (stage.process(1).await, engine(&stage.ring(), 2).await);
    let before = acquire(&old, "held before").await;
    old.cut_off(true);
    declared(&stage).await;
    sleep(SECOND).await;

    let waiting = asks(&old, "waited for", Wait::For(60 * SECOND));
    let late = ask(&old, "key", Wait::For(5 * SECOND)).await.unwrap_err();
    assert!(matches!(late, AcquireError::TimedOut { .. }), "{late}");
    assert_eq!(records(&stage, "key").await, 0);
    let guard = ask(&new, "key", Wait::No).await.unwrap();
    assert_eq!(records(&stage, "key").await, 3);
    let late = ask(&old, "key", Wait::For(5 * SECOND)).await;
    assert!(late.is_err() && guard.is_held());
    assert!(before.is_held(), "it is renewed");
    before.release().await;

    old.cut_off(false);
    let waited = timeout(5 * SECOND, waiting).await.unwrap().unwrap();
    assert!(waited.unwrap().is_held());
    assert_eq!(records(&stage, "waited for").await, 3);
    let token = guard.token();
    guard.release().await;
    let next = ask(&old, "key", Wait::For(SECOND)).await.unwrap();
    assert_eq!(records(&stage, "key").await, 3);
    assert!(next.token() > token);
    drop(acquire(&old, "held before").await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_a_lock_that_is_held_is_not_declared() {
    let stage = Stage::new(3).await;
    let engine = engine(&stage.ring(), 1).await;
    let guard = ask(&engine, "key", Wait::No).await.unwrap();
    let waiting = asks(&engine, "key", Wait::For(60 * SECOND));
    let other = asks(&engine, "other", Wait::For(60 * SECOND));
    other.await.unwrap().unwrap().release().await;
    let refused = declare(&stage).await.unwrap_err();
    assert!(matches!(refused, NamespaceError::InUse { .. }), "{refused}");
    assert!(refused.is_retryable() && refused.effect() == Effect::None);
    let record = stage.record();
    assert!(record.declaring.is_empty() && record.namespaces.is_empty());
    engine.refresh().await.unwrap();
    assert!(guard.is_held());
    guard.release().await;
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(records(&stage, "key").await, 1);
    next.release().await;

    declared(&stage).await;
    engine.refresh().await.unwrap();
    let next = ask(&engine, "key", Wait::For(SECOND)).await.unwrap();
    assert_eq!(records(&stage, "key").await, 3);
    assert!(next.is_held());
}

/// A waiter of before may be granted the lock in the recovery period's last moment, or just after.
#[tokio::test(start_paused = true)]
async fn a_declaration_waits_for_recovery_periods_and_waiters() {
    let stage = Stage::new(3).await;
    let (old, new) = (stage.process(1).await, engine(&stage.ring(), 2).await);
    (0..3).for_each(|index| stage.faults(index).restart(false));
    sleep(SECOND).await;
    let waiting = asks(&old, "key", Wait::For(120 * SECOND));
    sleep(SECOND).await;
    old.cut_off(true);
    let grace = stage.record().constants.grace();
    let began = tokio::time::Instant::now();
    declared(&stage).await;
    assert!(began.elapsed() >= grace - 5 * SECOND);
    new.refresh().await.unwrap();
    let guard = ask(&new, "key", Wait::For(SECOND)).await.unwrap();
    sleep(10 * SECOND).await;
    assert!(!waiting.is_finished() && guard.is_held());
    assert_eq!(records(&stage, "key").await, 3);
}

#[tokio::test(start_paused = true)]
async fn locks_are_refused_until_an_interrupted_declaration_is_repeated() {
    let stage = Stage::new(3).await;
    let engine = engine(&stage.ring(), 1).await;
    timeout(SECOND, declare(&stage)).await.unwrap_err();
    assert_eq!(
        stage.record().declaring.replicas(&ledger()),
        Replicas::Three
    );
    sleep(SECOND).await;
    let refused = ask(&engine, "key", Wait::No).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Declaring(_)), "{refused}");
    assert!(refused.is_retryable() && refused.effect() == Effect::None);
    let waiting = asks(&engine, "key", Wait::For(60 * SECOND));
    declared(&stage).await;
    assert!(stage.record().declaring.is_empty());
    let guard = timeout(5 * SECOND, waiting).await.unwrap().unwrap();
    assert_eq!(records(&stage, "key").await, 3);
    assert!(guard.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_restarts_meanwhile_or_later_refuses_older_views_too() {
    let stage = Stage::new(3).await;
    let (old, new) = (stage.process(1).await, engine(&stage.ring(), 2).await);
    old.cut_off(true);
    let declaring = tokio::spawn({
        let stage = stage.clone();
        async move { declared(&stage).await }
    });
    sleep(SECOND).await;
    stage.faults(0).restart(false);
    declaring.await.unwrap();
    stage.faults(1).restart(false);
    sleep(2 * stage.record().constants.grace()).await;
    for index in 0..3 {
        let key = stage.key_at(index);
        let late = timeout(5 * SECOND, acquire(&old, &key)).await;
        assert!(late.is_err(), "at shard {index}");
        drop(acquire(&new, &key).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_answer_is_named_and_the_declaration_undone() {
    let stage = Stage::new(3).await;
    let declaring = tokio::spawn({
        let stage = stage.clone();
        async move { declare(&stage).await }
    });
    sleep(SECOND).await;
    assert!(!stage.record().declaring.is_empty());
    stage.faults(1).unreachable(true);
    stage.faults(1).hang_up();
    refused_by_second(&declaring.await.unwrap().unwrap_err());
    assert!(stage.record().declaring.is_empty());
}

#[tokio::test(start_paused = true)]
async fn while_a_shard_does_not_answer_no_declaration_begins() {
    let stage = Stage::new(3).await;
    let version = stage.record().version();
    stage.faults(1).unreachable(true);
    refused_by_second(&declare(&stage).await.unwrap_err());
    assert_eq!(stage.record().version(), version);
}

fn refused_by_second(error: &NamespaceError) {
    let NamespaceError::Unknown { shard, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(*shard, ringfence_coordinator::topology::shard_id(1));
    assert!(error.is_retryable() && error.effect() == Effect::None);
}

#[tokio::test(start_paused = true)]
async fn locks_of_other_namespaces_are_acquired_meanwhile() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    declared(&stage).await;
    lockers.stop().await;
}
