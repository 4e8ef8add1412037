//! What a life remembers, and what ends with it.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    super::{
        queue::Waiter,
        queues::Queues,
        records::{Entry, Records},
    },
    *,
};

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

/// After a dead shard's slots were forced open here: its holders may still believe.
#[tokio::test(start_paused = true)]
async fn while_shut_only_what_is_here_is_extended() {
    let (shard, mut link) = armed().await;
    link.call(&[acquire("key", 1)]).await.unwrap();
    {
        let faults = shard.faults();
        let mut state = faults.0.state();
        let armed = state.memory.armed_mut().unwrap();
        armed.shut_until_ms = faults.0.now_ms() + 1000;
        armed.grace_until_ms = faults.0.now_ms() + 2000;
    }
    let moved = Reply::Moved { epoch: Epoch(5) };
    assert_eq!(reply(&mut link, acquire("key", 1)).await, moved);
    assert_eq!(reply(&mut link, acquire("free", 1)).await, moved);
    assert_eq!(
        reply(&mut link, renew("key", 1)).await,
        Reply::Renewed {
            reclaimed: false,
            contended: false,
            moving: None,
        }
    );
    assert_eq!(reply(&mut link, renew("key", 2)).await, moved);
    assert_eq!(reply(&mut link, renew("free", 2)).await, moved);

    sleep(Duration::from_millis(1000)).await;
    assert_eq!(
        reply(&mut link, renew("free", 2)).await,
        Reply::Renewed {
            reclaimed: true,
            contended: false,
            moving: None,
        }
    );
    assert!(matches!(
        reply(&mut link, acquire("key", 1)).await,
        Reply::Grace { .. }
    ));
    sleep(Duration::from_millis(1000)).await;
    assert!(matches!(
        reply(&mut link, acquire("key", 1)).await,
        Reply::Granted { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_mark_fails_while_shut() {
    let (shard, _link) = armed().await;
    let until = shard.faults().0.now_ms() + 1000;
    shard
        .faults()
        .0
        .state()
        .memory
        .armed_mut()
        .unwrap()
        .shut_until_ms = until;
    let incarnation = shard.traces().fence.unwrap();
    let mark = MarkQuiet {
        incarnation,
        copy: (7, String::new()),
        map: MapVersion(7),
        slots: Vec::new(),
    };
    let mut control = mover(&shard).await;
    assert!(!control.mark_quiet(&mark).await.unwrap());
    sleep(Duration::from_millis(1000)).await;
    assert!(control.mark_quiet(&mark).await.unwrap());
}

#[test]
fn expired_records_do_not_pile_up() {
    let mut records = Records::new();
    for now_ms in 0..100_000 {
        let (nonce, token) = (nonce(now_ms), Token::new(Epoch(5), now_ms));
        let record = Record {
            nonce,
            label: Label::default(),
            token,
            tokens: 1,
            arm: Epoch(5),
            told: false,
        };
        let entry = Entry {
            record,
            expires_ms: now_ms + 1000,
        };
        records.put(&key(&now_ms.to_string()), entry, now_ms);
        assert!(records.len() <= 4096, "{}", records.len());
    }
    assert!(records.len() >= 1000);
}

#[test]
fn ended_queues_do_not_pile_up() {
    let mut queues = Queues::new();
    for now_ms in 0..100_000 {
        let waiter = Waiter {
            nonce: nonce(now_ms),
            label: Label::default(),
            tokens: 1,
            ticket: ticket(),
            ends_ms: now_ms + 1000,
        };
        queues.enter(&key(&now_ms.to_string()), waiter, now_ms);
        assert!(queues.len() <= 4096, "{}", queues.len());
    }
    assert!(queues.len() >= 1000);
}
