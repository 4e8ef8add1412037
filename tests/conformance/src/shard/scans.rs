//! A mover's knowledge of the keys left in sealed slots.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, acquire, all_slots, armed_with, mover, nonce},
    movers::{EARLIER, LATER, MOVE, armed_in, moving_desk, step, still},
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::MapVersion,
    limits::{BATCH_MAX, SCAN_PAGE},
    shard::{Grace, HeldStill, Mode, Op, Scan, ShardError},
};

/// Keys that are held, in more than a few pages.
const MANY: usize = 3 * SCAN_PAGE;

/// Waiters queue again by themselves, and all other keys stay.
pub async fn a_scan_lists_the_held_keys_of_sealed_slots(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (both, _) = desk.with_queue("key", LONG, &[nonce()]).await;
    let mut others = desk.many_beside(&both);
    let [alone, waited] = [(); 2].map(|()| others.next().expect("there are many"));
    drop(others);
    desk.granted(&alone, nonce(), LONG).await;
    desk.granted(&elsewhere(&desk, &both), nonce(), LONG).await;
    let holder = nonce();
    desk.granted(&waited, holder, LONG).await;
    desk.queues(&waited, nonce()).await;
    desk.becomes(&both, MOVE, Mode::Sealed).await;
    desk.release(&waited, holder).await;

    let mut expected = [alone, both.clone()];
    expected.sort();
    assert_eq!(desk.scanned(MOVE).await, expected);
    for epoch in [EARLIER, LATER] {
        assert_eq!(desk.scanned(epoch).await, [], "of another move");
    }
    desk.becomes(&both, LATER, Mode::Import).await;
    assert_eq!(desk.scanned(LATER).await, [], "it does not leave");
}

/// A key that is not named may be granted elsewhere.
pub async fn a_scan_leaves_out_ended_records_and_nothing_else(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (lapsed, _) = desk.with_queue("key", SHORT, &[nonce()]).await;
    let kept = desk.beside(&lapsed);
    desk.granted(&kept, nonce(), LONG).await;
    fixture.elapse(PAST_SHORT).await;
    desk.becomes(&kept, MOVE, Mode::Sealed).await;
    assert_eq!(desk.scanned(MOVE).await, [kept]);
}

/// Until it is over any key may be put back.
pub async fn in_grace_a_scan_lists_nothing_and_nothing_is_empty(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    let grace = Grace::Full(SHORT);
    armed_in(fixture, (FIRST + 1, grace), (&key, Mode::Sealed)).await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    desk.renew(&key, (holder, token), LONG).await;

    let in_grace = |left: Duration| !left.is_zero() && left <= SHORT + fixture.late();
    let (epoch, after) = (MOVE, None);
    let page = desk
        .mover
        .scan(&Scan { epoch, after })
        .await
        .expect("an answer");
    assert!(in_grace(page.grace_left), "{page:?}");
    assert_eq!((page.held, page.next), (vec![], None));
    let all = still(MOVE, &[&key], &all_slots());
    let answer = desk.mover.still_held(&all).await.expect("an answer");
    assert!(in_grace(answer.grace_left), "{answer:?}");
    assert_eq!((answer.keys, answer.refused), (vec![], vec![]));

    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.scanned(MOVE).await, [key]);
}

/// However many locks there are, the shard serves everybody else in between.
pub async fn a_scan_comes_in_pages_and_misses_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let keys: Vec<_> = (0..MANY).map(|at| desk.key(at.to_string())).collect();
    for some in keys.chunks(BATCH_MAX) {
        let take = |key| desk.request(key, acquire(nonce(), LONG));
        let batch: Vec<_> = some.iter().map(take).collect();
        desk.batch(&batch).await;
    }
    let half: Vec<_> = all_slots().into_iter().step_by(2).collect();
    desk.step(&step(MOVE, Mode::Sealed, &half)).await;

    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let scan = Scan { epoch: MOVE, after };
        let page = desk.mover.scan(&scan).await.expect("an answer");
        // A server's table may have some in one place.
        assert!(page.held.len() <= 2 * SCAN_PAGE, "{}", page.held.len());
        pages.push(page.held);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(pages.len() >= 3, "{}", pages.len());
    let mut found = pages.concat();
    found.sort();
    found.dedup();
    let mut expected: Vec<_> = keys
        .iter()
        .filter(|key| half.contains(&key.slot()))
        .collect();
    expected.sort();
    assert!(found.iter().eq(expected), "{}", found.len());
}

/// For any bytes in a key.
pub async fn a_scan_tells_hostile_keys_as_they_are(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let pairs = super::grants::hostile_pairs(&desk);
    let mut keys: Vec<_> = pairs.into_iter().flatten().collect();
    keys.sort();
    keys.dedup();
    for key in &keys {
        desk.granted(key, nonce(), LONG).await;
        desk.queues(key, nonce()).await;
    }
    desk.step(&step(MOVE, Mode::Sealed, &all_slots())).await;
    assert_eq!(desk.scanned(MOVE).await, keys);
    let keys: Vec<_> = keys.iter().collect();
    let asked = still(MOVE, &keys, &all_slots());
    let mut answer = desk.mover.still_held(&asked).await.expect("an answer");
    answer.keys.sort();
    assert!(answer.keys.iter().eq(keys), "{answer:?}");
}

/// A mover waits for the last of these, and for nothing else.
pub async fn still_held_keys_have_a_live_record(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (lapsed, _) = desk.with_queue("key", SHORT, &[nonce()]).await;
    let mut others = desk.many_beside(&lapsed);
    let [kept, removed, free] = [(); 3].map(|()| others.next().expect("there are many"));
    drop(others);
    let (holder, slots) = (nonce(), [lapsed.slot()]);
    desk.granted(&kept, holder, LONG).await;
    desk.granted(&removed, holder, LONG).await;
    desk.becomes(&kept, MOVE, Mode::Sealed).await;
    let asked = still(MOVE, &[&lapsed, &kept, &removed, &free], &slots);
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    assert!(answer.keys.contains(&kept) && answer.keys.contains(&removed));
    assert!(!answer.keys.contains(&free), "{answer:?}");

    fixture.elapse(PAST_SHORT).await;
    let remove = Op::Remove {
        nonce: holder,
        epoch: MOVE,
    };
    assert_eq!(word(&desk.one(&removed, remove).await), "released");
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    let expected = HeldStill {
        grace_left: Duration::ZERO,
        keys: vec![kept],
        refused: vec![],
    };
    assert_eq!(answer, expected);
}

/// A request about the wrong move, or too early, is told of no empty slot.
pub async fn still_held_refuses_slots_of_other_moves(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Sealed).await;
    let other = elsewhere(&desk, &key);
    let slots = [key.slot(), other.slot()];
    for (mode, epoch, leaves) in [
        (Mode::Shut, EARLIER, true),
        (Mode::Import, MOVE, false),
        (Mode::Open, MOVE, false),
        (Mode::Sealed, LATER, true),
    ] {
        desk.becomes(&other, epoch, mode).await;
        for asked in [EARLIER, MOVE, LATER] {
            let still = still(asked, &[], &slots);
            let answer = desk.mover.still_held(&still).await.expect("an answer");
            let mut expected = Vec::new();
            expected.extend((asked != MOVE).then_some(key.slot()));
            expected.extend((!leaves || asked != epoch).then_some(other.slot()));
            assert_eq!(answer.refused, expected, "{mode:?} at {epoch}, {asked}");
        }
    }
}

/// It would tell of slots that are empty for nobody knows how long.
pub async fn an_unarmed_shard_has_nothing_left_to_tell(fixture: &dyn Fixture) {
    let key = Desk::open(fixture, MapVersion::UNKNOWN).await.key("key");
    let (epoch, after) = (MOVE, None);
    for round in 0..2 {
        let mut link = mover(fixture).await;
        let refused = link
            .scan(&Scan {
                epoch,
                after: after.clone(),
            })
            .await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
        let mut link = mover(fixture).await;
        let refused = link.still_held(&still(MOVE, &[&key], &all_slots())).await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
        if round == 0 {
            let armed = armed_with(fixture, FIRST, Grace::None).await;
            armed.expect("it was not armed");
            fixture.restart().await;
        }
    }
}
