//! Messages that are lost, late, slow, or cut off.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::shard::Lane;

#[tokio::test(start_paused = true)]
async fn a_lost_reply_was_applied_and_a_lost_request_was_not() {
    let (shard, mut work) = armed().await;
    let mut renewals = locks(&shard, LockLane::Renew).await;
    shard.faults().lose_reply(Lane::Work, 2);
    work.call(&[acquire("first", 1)]).await.unwrap();
    renewals.call(&[renew("first", 1)]).await.unwrap();
    assert_no_reply(work.call(&[acquire("second", 2)]).await);
    assert_no_reply(work.call(&[acquire("third", 3)]).await);
    assert_eq!(holder(&shard, "second").await, Some(2), "applied");
    assert_eq!(holder(&shard, "third").await, None, "the link was dead");

    let mut work = locks(&shard, LockLane::Work).await;
    shard.faults().lose_request(Lane::Work, 1);
    assert_no_reply(work.call(&[acquire("fourth", 4)]).await);
    assert_eq!(holder(&shard, "fourth").await, None);
    renewals.call(&[renew("first", 1)]).await.unwrap();
    locks(&shard, LockLane::Work)
        .await
        .call(&[acquire("fourth", 4)])
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stalled_shard_answers_when_it_goes_on() {
    let (shard, mut link) = armed().await;
    shard.faults().stall();
    timeout(LEASE, locks(&shard, LockLane::Work))
        .await
        .expect_err("it is stalled");
    let faults = shard.faults();
    let resume = async {
        sleep(LEASE).await;
        faults.resume();
    };
    let batch = [acquire("key", 1)];
    let (answers, ()) = tokio::join!(link.call(&batch), resume);
    assert!(matches!(answers.unwrap().replies[0], Reply::Granted { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_request_given_up_in_a_stall_is_applied_after_it() {
    let (shard, mut link) = armed().await;
    shard.faults().stall();
    timeout(MOMENT, link.call(&[acquire("key", 1)]))
        .await
        .expect_err("it is stalled");
    assert_no_reply(link.call(&[acquire("other", 1)]).await);
    shard.faults().resume();
    assert_eq!(holder(&shard, "key").await, Some(1));
    assert_eq!(holder(&shard, "other").await, None);
}

/// It is applied before the new connection answers, or never.
#[tokio::test(start_paused = true)]
async fn no_request_given_up_is_applied_after_its_connection_was_ended() {
    let mut outcomes = [0; 2];
    for seed in 0..20 {
        let (shard, mut link) = armed_from(seeded(seed)).await;
        shard.faults().stall();
        timeout(MOMENT, link.call(&[acquire("key", 1)]))
            .await
            .expect_err("it is stalled");
        shard.faults().resume();
        let former = (link.life().clone(), link.connection());
        drop(link);
        let mut link = shard
            .connect_locks(LockLane::Work, Some(former))
            .await
            .unwrap();
        let applied = matches!(
            reply(&mut link, acquire("key", 2)).await,
            Reply::Held { .. }
        );
        sleep(MOMENT).await;
        assert_eq!(
            holder(&shard, "key").await,
            Some(if applied { 1 } else { 2 })
        );
        outcomes[usize::from(applied)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_late_request_of_an_earlier_life_is_never_applied() {
    let (shard, _) = armed().await;
    let mut link = mover(&shard).await;
    shard.faults().stall();
    let incarnation = Incarnation {
        number: 9,
        engine: ClientId(0),
    };
    timeout(MOMENT, link.raise(incarnation, Epoch(9)))
        .await
        .expect_err("it is stalled");
    shard.faults().restart(true);
    shard.faults().resume();
    mover(&shard).await.arm(&arm(6, Grace::None)).await.unwrap();
    assert_eq!(shard.traces().fence.unwrap().number, 6);
    assert_eq!(shard.traces().epoch_seen, Epoch(6));
}

#[tokio::test(start_paused = true)]
async fn latency_is_drawn_there_and_back() {
    let (shard, mut link) = armed().await;
    shard.faults().latency(MOMENT..3 * MOMENT);
    let mut lengths = Vec::new();
    for sequence in 0..20 {
        let before = Instant::now();
        link.call(&[acquire("key", sequence)]).await.unwrap();
        lengths.push(before.elapsed());
    }
    assert!(
        lengths
            .iter()
            .all(|length| (2 * MOMENT..=6 * MOMENT + MOMENT).contains(length))
    );
    assert!(
        lengths.iter().any(|length| *length != lengths[0]),
        "{lengths:?}"
    );
    shard.faults().latency(Duration::ZERO..Duration::ZERO);
    let before = Instant::now();
    link.call(&[acquire("key", 1)]).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

/// The answer is on its way back when the caller gives up. The link must not give it to the next request.
#[tokio::test(start_paused = true)]
async fn a_link_whose_call_was_given_up_is_dead() {
    let (shard, mut link) = armed().await;
    shard.faults().latency(MOMENT..MOMENT);
    timeout(MOMENT * 3 / 2, link.call(&[acquire("key", 1)]))
        .await
        .expect_err("on its way back");
    assert_no_reply(link.call(&[acquire("other", 2)]).await);
    assert_eq!(holder(&shard, "key").await, Some(1));
    assert_eq!(holder(&shard, "other").await, None);
}
