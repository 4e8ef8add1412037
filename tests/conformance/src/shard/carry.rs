//! Counters that change hands with their slots.

use ringfence_segment_lock::segment::{Reply as Told, State};

use super::{
    Fixture,
    desk::{Desk, FIRST, mover},
    hands::{MANY, reserve},
    movers::{EARLIER, LATER, MOVE, armed_in},
};
use ringfence_coordinator::{
    ids::{Epoch, Life, MapVersion},
    limits::GROUPS_PAGE,
    shard::{
        Admit, Arrival, Arrive, AskGroups, CopyIn, CopyOut, CounterOp, CounterReply, DropGroups,
        Excerpt, Grace, Group, Mode, ShardError, Stamp, When,
    },
};

/// Not a coin less, not an answer forgotten.
pub async fn a_moved_counter_is_unchanged(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key(b"coins/\xff:{7}|*[".as_slice());
    let (copied, view) = desk.leaves(&key).await;
    for _ in 0..2 {
        assert!(desk.puts(LATER, &copied, &copied.pieces).await);
        assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    }
    assert_eq!(desk.admits(LATER, &key).await, []);
    assert_eq!(desk.view(&key).await, view);
    for nth in 0..MANY {
        desk.deposits(&key, &format!("deposit {nth}"), 3).await;
    }
    let held = desk.count(&key, reserve("reservation", 2)).await;
    let is_held = matches!(
        held,
        CounterReply::Segment(Ok(Told::Recorded(State::Held { .. }, _)))
    );
    assert!(is_held, "{held:?}");
    assert_eq!(desk.view(&key).await, view, "repeats change nothing");
    let manifest = desk.count(&key, CounterOp::ReadManifest).await;
    assert_eq!(manifest, CounterReply::Manifest(Some((1, "layout".into()))));
    desk.becomes(&key, Epoch(LATER.0 + 1), Mode::Sealed).await;
    let again = desk.copies(Epoch(LATER.0 + 1), &key).await;
    assert_eq!((again.group.since, again.sizes), (LATER, copied.sizes));
}

/// A slot may have many, and another none.
pub async fn groups_are_told_until_none_is_left(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let mut keys: Vec<_> = desk.many_beside(&key).take(2 * GROUPS_PAGE + 3).collect();
    for key in &keys {
        desk.creates(key).await;
    }
    let other = super::slots::elsewhere(&desk, &key);
    desk.creates(&other).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    let mut found = Vec::new();
    loop {
        let (groups, refused) = desk.groups_left(MOVE, &[key.slot()]).await;
        assert_eq!(refused, []);
        if groups.is_empty() {
            break;
        }
        for group in groups {
            assert_eq!(desk.drops(MOVE, &group.key).await, []);
            found.push(group.key);
        }
    }
    keys.sort();
    found.sort();
    assert_eq!(found, keys);
    assert_eq!(desk.view(&other).await.value, 0, "another slot's is there");
}

/// A mover that comes late takes nothing away.
pub async fn groups_leave_by_their_own_move_alone(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.creates(&key).await;
    desk.deposits(&key, "all", 7).await;
    let none = async |desk: &mut Desk, epoch| {
        let (groups, refused) = desk.groups_left(epoch, &[key.slot()]).await;
        assert_eq!((groups, refused), (Vec::new(), vec![key.slot()]));
        assert_eq!(desk.piece(epoch, &key).await, None);
        assert_eq!(desk.drops(epoch, &key).await, [key.slot()]);
    };
    none(&mut desk, Epoch(FIRST)).await;
    for mode in [Mode::Sealed, Mode::Shut] {
        desk.becomes(&key, MOVE, mode).await;
        none(&mut desk, EARLIER).await;
        none(&mut desk, LATER).await;
        assert!(desk.piece(MOVE, &key).await.is_some(), "{mode:?}");
    }
    desk.becomes(&key, LATER, Mode::Import).await;
    none(&mut desk, LATER).await;
    assert_eq!(desk.admits(LATER, &key).await, []);
    assert_eq!(desk.view(&key).await.value, 7);
}

/// Neither does it bring anything.
pub async fn groups_come_by_their_own_move_alone(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (copied, _) = desk.leaves(&key).await;
    for epoch in [EARLIER, MOVE, Epoch(LATER.0 + 1)] {
        // That a slot is to come is no news: it may be put aside.
        let taken = desk.puts(epoch, &copied, &copied.pieces).await;
        assert_eq!(taken, epoch > LATER);
        assert_eq!(desk.arrives(epoch, &copied).await, Arrival::Refused);
        assert_eq!(desk.admits(epoch, &key).await, [key.slot()]);
    }
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    let back = Epoch(LATER.0 + 1);
    for mode in [Mode::Sealed, Mode::Shut] {
        desk.becomes(&key, back, mode).await;
        for epoch in [LATER, back] {
            assert!(!desk.puts(epoch, &copied, &copied.pieces).await);
            assert_eq!(desk.arrives(epoch, &copied).await, Arrival::Refused);
            assert_eq!(desk.admits(epoch, &key).await, [key.slot()]);
        }
    }
    let (groups, _) = desk.groups_left(back, &[key.slot()]).await;
    assert_eq!(groups, [], "what was put aside is nobody's");
}

/// Half a counter is none.
pub async fn a_group_arrives_once_all_of_it_is_there(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (copied, view) = desk.leaves(&key).await;
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Incomplete);
    for left_out in 0..copied.pieces.len() {
        let mut pieces = copied.pieces.clone();
        pieces.remove(left_out);
        assert!(desk.puts(LATER, &copied, &pieces).await);
        let arrival = desk.arrives(LATER, &copied).await;
        assert_eq!(arrival, Arrival::Incomplete, "without piece {left_out}");
    }
    // Two movers, one behind the other.
    let mut pieces = copied.pieces.clone();
    for (nth, piece) in copied.pieces.iter().enumerate() {
        pieces.insert(2 * nth + 1, piece.clone());
    }
    pieces.extend(copied.pieces.iter().cloned());
    assert!(desk.puts(LATER, &copied, &pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    desk.admits(LATER, &key).await;
    assert_eq!(desk.view(&key).await, view);
}

/// A shard that came back may have less than what was copied of it before; and what an earlier move left aside is
/// of another time.
pub async fn pieces_of_another_life_or_another_move_do_not_fit(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (mut copied, view) = desk.leaves(&key).await;
    // Blocks, which come first, fit any life.
    let (first, rest) = copied.pieces.split_at(copied.pieces.len() - 1);
    let (first, rest) = (first.to_vec(), rest.to_vec());
    assert!(desk.puts(LATER, &copied, &first).await);
    let life = std::mem::replace(&mut copied.source, Life::new("another"));
    assert!(desk.puts(LATER, &copied, &rest).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Incomplete);
    copied.source = life;

    assert!(desk.puts(LATER, &copied, &first).await);
    let latest = Epoch(LATER.0 + 2);
    desk.becomes(&key, latest, Mode::Import).await;
    assert!(desk.puts(latest, &copied, &rest).await);
    assert_eq!(desk.arrives(latest, &copied).await, Arrival::Incomplete);
    assert!(desk.puts(latest, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(latest, &copied).await, Arrival::Here(None));
    desk.admits(latest, &key).await;
    assert_eq!(desk.view(&key).await, view);
}

/// A second copy must not undo later changes.
pub async fn a_later_group_is_never_replaced(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (copied, view) = desk.leaves(&key).await;
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    desk.admits(LATER, &key).await;
    desk.deposits(&key, "since", 5).await;
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    assert_eq!(desk.owns(&key).await, view.value + view.held + 5);

    // The former shard came back as it was before, when the move was planned anew.
    let anew = Epoch(LATER.0 + 1);
    desk.becomes(&key, anew, Mode::Import).await;
    assert!(desk.puts(anew, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(anew, &copied).await, Arrival::Here(None));
    desk.admits(anew, &key).await;
    assert_eq!(desk.owns(&key).await, view.value + view.held + 5);
}

/// Groups from an earlier time, or from a move that is turned back, do not count.
pub async fn an_older_group_is_replaced(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.creates(&key).await;
    desk.deposits(&key, "before", 7).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    let mut copied = desk.copies(MOVE, &key).await;
    desk.becomes(&key, LATER, Mode::Import).await;
    desk.admits(LATER, &key).await;
    desk.deposits(&key, "in vain", 100).await;
    copied.group.since = MOVE;
    assert!(desk.puts(LATER, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(LATER, &copied).await, Arrival::Here(None));
    assert_eq!(desk.view(&key).await.value, 7);
    desk.deposits(&key, "in vain", 100).await;
    assert_eq!(desk.view(&key).await.value, 107, "it was not remembered");
}

/// Locks may be held at the former shard for long.
pub async fn counters_of_a_slot_that_comes_are_served_once_they_are_admitted(
    fixture: &dyn Fixture,
) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let read_manifest = async |desk: &mut Desk| desk.count(&key, CounterOp::ReadManifest).await;
    desk.becomes(&key, MOVE, Mode::Import).await;
    assert_eq!(
        read_manifest(&mut desk).await,
        CounterReply::Coming { epoch: MOVE }
    );
    for _ in 0..2 {
        assert_eq!(desk.admits(MOVE, &key).await, []);
        assert_eq!(read_manifest(&mut desk).await, CounterReply::Manifest(None));
        desk.becomes(&key, MOVE, Mode::Import).await;
        assert_eq!(read_manifest(&mut desk).await, CounterReply::Manifest(None));
    }
    desk.creates(&key).await;
    desk.becomes(&key, MOVE, Mode::Open).await;
    assert_eq!(desk.admits(MOVE, &key).await, [], "it has come");
    assert_eq!(desk.view(&key).await.value, 0);
    desk.becomes(&key, LATER, Mode::Sealed).await;
    assert_eq!(
        read_manifest(&mut desk).await,
        CounterReply::Moving { epoch: LATER }
    );
    let again = Epoch(LATER.0 + 1);
    desk.becomes(&key, again, Mode::Import).await;
    let coming = CounterReply::Coming { epoch: again };
    assert_eq!(read_manifest(&mut desk).await, coming, "it is of one move");
}

/// What a shard that came back has of a move goes on; that it had all is to be said again.
pub async fn carried_counters_outlast_a_life(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.creates(&key).await;
    desk.deposits(&key, "all", 7).await;
    desk.becomes(&key, EARLIER, Mode::Sealed).await;
    let copied = desk.copies(EARLIER, &key).await;
    desk.drops(EARLIER, &key).await;
    desk.becomes(&key, MOVE, Mode::Import).await;
    assert!(desk.puts(MOVE, &copied, &copied.pieces).await);
    assert_eq!(desk.arrives(MOVE, &copied).await, Arrival::Here(None));
    desk.admits(MOVE, &key).await;
    fixture.restart().await;
    armed_in(fixture, (FIRST, Grace::None), (&key, Mode::Import)).await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let coming = CounterReply::Coming { epoch: MOVE };
    assert_eq!(desk.count(&key, CounterOp::ReadManifest).await, coming);
    desk.becomes(&key, MOVE, Mode::Import).await;
    assert_eq!(desk.arrives(MOVE, &copied).await, Arrival::Here(None));
    assert_eq!(desk.admits(MOVE, &key).await, []);
    assert_eq!(desk.view(&key).await.value, 7);
}

/// A shard that came back is armed by the topology, and by nobody else.
pub async fn an_unarmed_shard_carries_nothing(fixture: &dyn Fixture) {
    let desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    let (epoch, slots) = (MOVE, vec![key.slot()]);
    let group = Group {
        key: key.clone(),
        since: EARLIER,
        blocks: Vec::new(),
    };
    let unarmed = |answer: Option<ShardError>| {
        assert!(matches!(answer, Some(ShardError::Unarmed)), "{answer:?}");
    };
    let mut link = mover(fixture).await;
    let ask = AskGroups {
        epoch,
        slots: slots.clone(),
        when: When::Sealed,
    };
    unarmed(link.groups(&ask).await.err());
    let mut link = mover(fixture).await;
    let copy = CopyOut {
        epoch,
        key: key.clone(),
        what: Excerpt::Rows(None),
    };
    unarmed(link.copy_out(&copy).await.err());
    let mut link = mover(fixture).await;
    let source = link.life().clone();
    let put = CopyIn {
        epoch,
        source: source.clone(),
        group: group.clone(),
        rows: Vec::new(),
    };
    unarmed(link.copy_in(&put).await.err());
    let mut link = mover(fixture).await;
    let arrive = Arrive {
        epoch,
        source,
        group,
        sizes: Vec::new(),
        stamp: Stamp::default(),
    };
    unarmed(link.arrive(&arrive).await.err());
    let mut link = mover(fixture).await;
    let groups = vec![(key, None)];
    let drop = DropGroups { epoch, groups };
    unarmed(link.drop_groups(&drop).await.err());
    let mut link = mover(fixture).await;
    let admit = Admit {
        epoch,
        slots,
        complete: true,
    };
    unarmed(link.admit(&admit).await.err());
}
