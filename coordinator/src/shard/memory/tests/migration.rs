//! Slots that change hands, where the conformance suite cannot look.

use tokio::time::sleep;

use super::*;
use crate::shard::{Cursor, LockMode, Proof, Scan, Step};

const MOVE: Epoch = Epoch(20);

fn step(mode: Mode, above: Token) -> Step {
    let Arm {
        incarnation, copy, ..
    } = arm(5, Grace::None);
    Step {
        incarnation,
        copy,
        map: MapVersion::UNKNOWN,
        epoch: MOVE,
        mode,
        slots: SlotCount::new(16).unwrap().iter().collect(),
        above,
    }
}

fn adopt(name: &str, sequence: u64) -> Request {
    let op = Op::Adopt {
        nonce: nonce(sequence),
        label: Label::default(),
        own: Token::new(Epoch(4), sequence),
        token: Token::new(Epoch(4), sequence),
        tokens: 1,
        mode: LockMode::Exclusive,
        lease: LEASE,
        epoch: MOVE,
    };
    Request {
        op,
        ..acquire(name, sequence)
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_has_been_seen_with_both_its_epochs() {
    let (shard, _) = armed().await;
    mover(&shard)
        .await
        .step(&step(Mode::Sealed, Token::default()))
        .await
        .unwrap();
    assert_eq!(shard.traces().epoch_seen, MOVE);
    let above = Token::new(Epoch(30), 1);
    mover(&shard)
        .await
        .step(&step(Mode::Import, above))
        .await
        .unwrap();
    assert_eq!(shard.traces().epoch_seen, Epoch(30));
}

/// Slots of a dead shard were opened here by force, and its holders may still believe in their locks.
#[tokio::test(start_paused = true)]
async fn while_shut_nothing_is_brought_along_or_told_free() {
    let (shard, mut link) = armed().await;
    mover(&shard)
        .await
        .step(&step(Mode::Import, Token::default()))
        .await
        .unwrap();
    {
        let faults = shard.faults();
        let mut state = faults.0.state();
        let timers = &mut state.memory.head.armed_mut().unwrap().timers;
        timers.shut_until_ms = faults.0.now_ms() + 1000;
    }
    let moved = Reply::Moved { epoch: MOVE };
    let mut proving = acquire("key", 1);
    if let Op::Acquire { proof, .. } = &mut proving.op {
        *proof = Some(Proof {
            epoch: MOVE,
            left: 0,
        });
    }
    assert_eq!(reply(&mut link, proving.clone()).await, moved);
    assert_eq!(reply(&mut link, adopt("key", 1)).await, Reply::NotAdopted);
    sleep(Duration::from_millis(1000)).await;
    let adopted = Reply::Adopted { contended: false };
    assert_eq!(reply(&mut link, adopt("key", 1)).await, adopted);
    let need_proof = Reply::NeedProof { epoch: MOVE };
    assert_eq!(reply(&mut link, acquire("free", 1)).await, need_proof);
}

#[tokio::test(start_paused = true)]
async fn a_page_after_what_is_no_key_is_refused() {
    let (shard, _) = armed().await;
    let after = Some(Cursor(b"17".to_vec()));
    let refused = mover(&shard).await.scan(&Scan { epoch: MOVE, after }).await;
    let of_scan = matches!(refused, Err(ShardError::Refused { what: "scan", .. }));
    assert!(of_scan, "{refused:?}");
}
