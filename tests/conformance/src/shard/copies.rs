//! Copies made before a slot is sealed; and that a copy equals its original.

use super::{
    Fixture,
    desk::{Desk, FIRST},
    movers::{LATER, MOVE},
};
use ringfence_coordinator::{
    ids::Epoch,
    name::LockKey,
    shard::{
        Arrival, AskGroups, Block, CopyIn, CopyOf, Dropped, Grace, Group, Mode, PutAside, Row,
        Stamp, When,
    },
};

/// What may be copied before a slot is sealed is asked for until a step of the move has reached it.
pub async fn of_slots_that_a_move_has_reached_nothing_is_copied_ahead(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.creates(&key).await;
    let refused = async |desk: &mut Desk, epoch, key: &LockKey| {
        let (slots, when) = (vec![key.slot()], When::Before(None));
        let ask = AskGroups { epoch, slots, when };
        let found = desk.mover.groups(&ask).await.expect("an answer");
        assert_eq!(
            (found.groups, found.next),
            (Vec::new(), None),
            "it has no blocks"
        );
        !found.refused.is_empty()
    };
    assert!(refused(&mut desk, Epoch(FIRST), &key).await);
    assert!(!refused(&mut desk, MOVE, &key).await);
    for mode in [Mode::Sealed, Mode::Shut] {
        desk.becomes(&key, MOVE, mode).await;
        assert!(refused(&mut desk, MOVE, &key).await, "{mode:?}");
        assert!(!refused(&mut desk, LATER, &key).await, "{mode:?}");
    }
}

/// A mover that finds that another one was faster copies nothing.
pub async fn of_a_group_that_has_arrived_nothing_is_lacked(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (copied, view) = desk.leaves(&key).await;
    let ask = CopyIn {
        epoch: LATER,
        source: copied.source.clone(),
        group: Group {
            blocks: vec![Block(b"block".to_vec())],
            ..copied.group.clone()
        },
        rows: Vec::new(),
    };
    let asked = desk.mover.copy_in(&ask).await.expect("an answer");
    assert_eq!(asked, PutAside::Lacks(ask.group.blocks.clone()));
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    let asked = desk.mover.copy_in(&ask).await.expect("an answer");
    assert_eq!(asked, PutAside::Arrived);
    desk.admits(LATER, &key).await;
    assert_eq!(desk.view(&key).await, view);
}

/// As many rows are not the same rows.
pub async fn a_copy_of_other_content_does_not_arrive(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (copied, view) = desk.leaves(&key).await;
    let mut pieces = copied.pieces.clone();
    for row in pieces.iter_mut().flatten() {
        match row {
            Row::Segment(segment) => segment.value += 1,
            Row::Stored { field, value, .. } if field == b"value" => *value = b"1000000".to_vec(),
            _ => {}
        }
    }
    assert_ne!(pieces, copied.pieces);
    assert!(desk.puts(LATER, &copied, &pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Differs);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Incomplete);
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    desk.admits(LATER, &key).await;
    assert_eq!(desk.view(&key).await, view);
}

/// What did not arrive is not dropped.
pub async fn a_group_is_dropped_only_if_it_is_what_arrived(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.fills(&key).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    let copied = desk.copies(MOVE, &key).await;
    let source = copied.source.clone();
    for stamp in [Stamp::default(), Stamp(b"another".to_vec())] {
        let copy = CopyOf {
            source: source.clone(),
            stamp,
        };
        let dropped = desk.drops_copied(MOVE, &key, Some(copy)).await;
        let expected = Dropped {
            refused: Vec::new(),
            differ: vec![key.clone()],
        };
        assert_eq!(dropped, expected);
    }
    let again = desk.copies(MOVE, &key).await;
    assert_eq!(
        (again.stamp, again.sizes),
        (copied.stamp.clone(), copied.sizes)
    );
    let copy = CopyOf {
        source: source.clone(),
        stamp: copied.stamp,
    };
    let dropped = desk.drops_copied(MOVE, &key, Some(copy)).await;
    assert_eq!(dropped, Dropped::default());
    assert_eq!(desk.groups_left(MOVE, &[key.slot()]).await.0, []);
    let nothing = CopyOf {
        source,
        stamp: Stamp::default(),
    };
    let dropped = desk.drops_copied(MOVE, &key, Some(nothing)).await;
    assert_eq!(dropped, Dropped::default(), "nothing is there");
}
