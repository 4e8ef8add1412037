//! Slots that change hands, where the conformance suite cannot look.

use super::*;
use crate::shard::{Cursor, Scan, Step};

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

#[tokio::test(start_paused = true)]
async fn a_page_after_what_is_no_key_is_refused() {
    let (shard, _) = armed().await;
    let after = Some(Cursor(b"17".to_vec()));
    let refused = mover(&shard).await.scan(&Scan { epoch: MOVE, after }).await;
    let of_scan = matches!(refused, Err(ShardError::Refused { what: "scan", .. }));
    assert!(of_scan, "{refused:?}");
}
