//! Queues and notifications under faults.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::shard::{Notification, Subscription};

fn queue(name: &str, sequence: u64) -> Request {
    let mut request = acquire(name, sequence);
    if let Op::Acquire { ticket: its, .. } = &mut request.op {
        *its = Some(ticket());
    }
    request
}

fn release(name: &str, sequence: u64) -> Request {
    let op = Op::Release {
        nonce: nonce(sequence),
    };
    Request {
        op,
        ..acquire(name, sequence)
    }
}

async fn listen(shard: &MemoryShard) -> Box<dyn Subscription> {
    shard.listen(nonce(0).client).await.unwrap()
}

async fn assert_ended(mut ear: Box<dyn Subscription>) {
    let ended = timeout(LEASE, ear.next()).await.expect("it has ended");
    assert_no_reply(ended);
}

/// The receiver of the turn in the next message.
async fn turn(ear: &mut Box<dyn Subscription>) -> Option<u64> {
    loop {
        match timeout(MOMENT, ear.next()).await.ok()?.unwrap() {
            Notification::Granted(turn) => return Some(turn.nonce.sequence),
            Notification::Contended { .. } => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_kept_with_the_records_or_gone() {
    for keep_records in [false, true] {
        let (shard, mut link) = armed().await;
        link.call(&[acquire("key", 1), queue("key", 2)])
            .await
            .unwrap();
        shard.faults().restart(keep_records);
        let arm = arm(6, Grace::None);
        mover(&shard).await.arm(&arm).await.unwrap();
        let mut link = locks(&shard, LockLane::Work).await;
        link.call(&[release("key", 1)]).await.unwrap();
        let next = keep_records.then_some(2);
        assert_eq!(holder(&shard, "key").await, next);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_message_loses_no_turn() {
    let (shard, mut link) = armed().await;
    let mut ear = listen(&shard).await;
    shard.faults().lose_notifications(true);
    link.call(&[acquire("key", 1), queue("key", 2), queue("key", 3)])
        .await
        .unwrap();
    link.call(&[release("key", 1)]).await.unwrap();
    assert_eq!(turn(&mut ear).await, None);
    assert_eq!(holder(&shard, "key").await, Some(2));
    shard.faults().lose_notifications(false);
    link.call(&[release("key", 2)]).await.unwrap();
    assert_eq!(turn(&mut ear).await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn unread_notifications_are_dropped_beyond_a_bound() {
    let (shard, mut link) = armed().await;
    let mut ear = listen(&shard).await;
    link.call(&[acquire("key", 1)]).await.unwrap();
    for _ in 0..10_000 {
        link.call(&[queue("key", 2)]).await.unwrap();
    }
    let mut heard = 0;
    while timeout(MOMENT, ear.next()).await.is_ok() {
        heard += 1;
    }
    assert!((100..10_000).contains(&heard), "{heard}");
    link.call(&[release("key", 1)]).await.unwrap();
    assert_eq!(turn(&mut ear).await, Some(2), "it goes on");
}

#[tokio::test(start_paused = true)]
async fn listeners_are_cut_off_with_all_other_connections() {
    let (shard, _link) = armed().await;
    let ear = listen(&shard).await;
    shard.faults().hang_up();
    assert_ended(ear).await;
    let ear = listen(&shard).await;
    shard.faults().restart(true);
    assert_ended(ear).await;
    shard.faults().unreachable(true);
    let refused = shard.listen(nonce(0).client).await;
    assert!(
        matches!(refused, Err(ShardError::Unreachable { .. })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn messages_take_their_time_and_keep_their_order() {
    let (shard, mut link) = armed().await;
    let mut ear = listen(&shard).await;
    shard.faults().latency(MOMENT..3 * MOMENT);
    let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    for name in &names {
        link.call(&[acquire(name, 1), queue(name, 2)])
            .await
            .unwrap();
    }
    for name in &names {
        let contended = Notification::Contended {
            key: key(name),
            nonce: nonce(1),
        };
        assert_eq!(ear.next().await.unwrap(), contended);
    }
    // The request has a delay of its own, and so has the notification.
    shard.faults().latency(MOMENT..MOMENT);
    let before = Instant::now();
    let heard = async {
        ear.next().await.unwrap();
        before.elapsed()
    };
    let batch = [queue("0", 2)];
    let (elapsed, answers) = tokio::join!(heard, link.call(&batch));
    answers.unwrap();
    assert!(elapsed >= 2 * MOMENT, "{elapsed:?}");
    assert!(elapsed < 3 * MOMENT, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_shard_tells_nobody_until_it_goes_on() {
    let (shard, mut link) = armed().await;
    let mut ear = listen(&shard).await;
    link.call(&[acquire("key", 1), queue("key", 2), release("key", 1)])
        .await
        .unwrap();
    shard.faults().stall();
    assert_eq!(turn(&mut ear).await, None);
    sleep(Duration::from_secs(1)).await;
    shard.faults().resume();
    assert_eq!(turn(&mut ear).await, Some(2));
}
