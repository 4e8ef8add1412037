//! The state that a life remembers, and the state that ends with it.

use std::time::Duration;

use tokio::time::sleep;

use super::{super::state::Memory, *};
use crate::{ids::Life, limits::TICKET_KEEP};

#[tokio::test(start_paused = true)]
async fn forgotten_state_is_unarmed_in_the_same_life() {
    let (shard, mut link) = armed().await;
    link.call(&[acquire("key", 1)]).await.unwrap();
    let life = shard.traces().life;
    shard.faults().forget();
    let refused = link.call(&[acquire("key", 2)]).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    let traces = shard.traces();
    assert_eq!(
        (traces.life, traces.fence, traces.copy, traces.armed),
        (life, None, None, None)
    );
    mover(&shard).await.arm(&arm(1, Grace::None)).await.unwrap();
    assert_eq!(holder(&shard, "key").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_another_life_with_records_or_without() {
    for keep_records in [false, true] {
        let (shard, mut link) = armed().await;
        link.call(&[acquire("key", 1)]).await.unwrap();
        shard.faults().restart(keep_records);
        let refused = link.call(&[acquire("key", 2)]).await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
        let mut control = mover(&shard).await;
        assert_ne!(control.life(), link.life());
        control.arm(&arm(6, Grace::Full(LEASE))).await.unwrap();
        assert_eq!(holder(&shard, "key").await, keep_records.then_some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_shard_serves_its_open_connections() {
    let (shard, mut link) = armed().await;
    shard.faults().unreachable(true);
    let refused = shard.connect_locks(LockLane::Work, None).await;
    assert!(
        matches!(refused, Err(ShardError::Unreachable { .. })),
        "{refused:?}"
    );
    link.call(&[acquire("key", 1)]).await.unwrap();
    shard.faults().hang_up();
    assert_no_reply(link.call(&[acquire("key", 1)]).await);
    shard.faults().unreachable(false);
    assert_eq!(holder(&shard, "key").await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_full_shard_refuses_new_locks_alone() {
    let (shard, mut link) = armed().await;
    link.call(&[acquire("key", 1)]).await.unwrap();
    shard.faults().out_of_memory(true);
    let release = Request {
        op: Op::Release { nonce: nonce(1) },
        ..acquire("key", 1)
    };
    let batch = [acquire("other", 2), renew("key", 1), release];
    let answers = link.call(&batch).await.unwrap();
    let expected = [
        Reply::OutOfMemory,
        Reply::Renewed {
            reclaimed: false,
            contended: false,
            moving: None,
        },
        Reply::Released { held: true },
    ];
    assert_eq!((answers.replies, answers.counter), (expected.to_vec(), 0));
}

#[tokio::test(start_paused = true)]
async fn uptime_shortens_a_grace_unless_the_shard_was_emptied() {
    let grace_left = async |uptime, emptied: bool, grace| {
        let shard = shard();
        sleep(uptime).await;
        if emptied {
            shard.faults().forget();
        }
        let mut control = mover(&shard).await;
        control.arm(&arm(5, grace)).await.unwrap().grace_left
    };
    let less = Grace::LessUptime(LEASE);
    assert_eq!(grace_left(LEASE / 4, false, less).await, LEASE * 3 / 4);
    assert_eq!(grace_left(LEASE * 2, false, less).await, Duration::ZERO);
    assert_eq!(grace_left(LEASE * 2, true, less).await, LEASE);
    assert_eq!(
        grace_left(LEASE * 2, false, Grace::Full(LEASE)).await,
        LEASE
    );
    assert_eq!(
        grace_left(Duration::ZERO, false, Grace::None).await,
        Duration::ZERO
    );
}

#[tokio::test(start_paused = true)]
async fn the_newest_copy_is_kept_not_the_first_nor_the_last() {
    let shard = shard();
    let mut control = mover(&shard).await;
    for (number, version, kept) in [(5, 2, 2), (5, 1, 2), (5, 4, 4), (6, 3, 3), (6, 3, 3)] {
        let copy = (version, format!("{number}.{version}"));
        control
            .arm(&Arm {
                copy,
                ..arm(number, Grace::None)
            })
            .await
            .unwrap();
        let traces = shard.traces();
        let (incarnation, version, text) = traces.copy.unwrap();
        assert_eq!((incarnation.number, version), (number, kept));
        assert_eq!(text, format!("{number}.{kept}"));
        assert_eq!(
            (traces.armed, traces.epoch_seen),
            (Some(Epoch(number)), Epoch(number))
        );
    }
    let stale = control
        .arm(&Arm {
            copy: (9, "stale".into()),
            ..arm(5, Grace::None)
        })
        .await;
    assert!(matches!(stale, Err(ShardError::Stale { .. })), "{stale:?}");
    assert_eq!(shard.traces().copy.unwrap().2, "6.3");
    mover(&shard)
        .await
        .raise(shard.traces().fence.unwrap(), Epoch(8))
        .await
        .unwrap();
    assert_eq!(shard.traces().epoch_seen, Epoch(8));
}

#[test]
fn expired_records_do_not_pile_up() {
    let mut memory = Memory::new(Life::new("life"), 0);
    memory.control(arm(5, Grace::None).into(), 0).unwrap();
    for now_ms in 0..100_000 {
        let mut request = acquire(&now_ms.to_string(), now_ms);
        if let Op::Acquire { lease, .. } = &mut request.op {
            *lease = Duration::from_millis(1000);
        }
        memory.call(&[request], now_ms).unwrap();
        let records = &memory.locks;
        assert!(records.len() <= 4096, "{}", records.len());
    }
    assert!(memory.locks.len() >= 1000);
}

/// In grace, a key has waiters and no record.
#[test]
fn ended_queues_do_not_pile_up() {
    const EVERY_MS: u64 = TICKET_KEEP.as_millis() as u64 / 1000;
    let mut memory = Memory::new(Life::new("life"), 0);
    let arm = arm(5, Grace::Full(Duration::from_secs(1000)));
    memory.control(arm.into(), 0).unwrap();
    for sequence in 0..100_000 {
        let mut request = acquire(&sequence.to_string(), sequence);
        if let Op::Acquire { ticket: its, .. } = &mut request.op {
            *its = Some(ticket());
        }
        memory.call(&[request], EVERY_MS * sequence).unwrap();
        let queues = &memory.locks;
        assert!(queues.len() <= 4096, "{}", queues.len());
    }
    assert!(memory.locks.len() >= 1000);
}
