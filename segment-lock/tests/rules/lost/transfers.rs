//! Transfers to and from segments that are lost, and reservations in them.

use std::collections::BTreeMap;

use super::*;

/// An account `b` in one segment.
async fn account_b(scene: &Scene) -> Counter {
    let terms = terms_of(&scene.counter).await;
    let b = Counter::create(scene.storage.clone(), account("b"), terms, 1);
    b.await.unwrap()
}

/// The destination's part of a transfer of `value`.
fn credit(id: &RequestId, from: &str, value: i64, to: &str) -> GiveCredit {
    GiveCredit {
        id: CreditId {
            id: id.clone(),
            from: account(from),
            reservation: None,
        },
        content: transfer(value, to).digest(),
        amount: amount(value),
        unit: Unit::NONE,
        is_promise: false,
        generation: 1,
        caller: OTHER,
    }
}

/// A transfer of 8 from segment 1 to `b`, which has them.
async fn credited_to_b(scene: &Scene) -> RequestId {
    let over = home(1, NOW, "over");
    let sent = Op {
        id: over.clone(),
        ..op("over", transfer(8, "b"))
    };
    scene.tell(1, sent).await.unwrap();
    let credit = credit(&over, "a", 8, "b");
    let credited = scene.memory.call(&at("b", 0), credit.into()).await.unwrap();
    assert_eq!(credited, Ok(Reply::Credited(Outcome::Credited)));
    over
}

/// An account `b` with 50 in one segment, and a transfer of 20 from it to a home that is about to be lost.
async fn sent_from_b(scene: &Scene) -> (Counter, RequestId) {
    let b = account_b(scene).await;
    b.deposit(&id(NOW, "in"), amount(50)).await.unwrap();
    let over = home(1, NOW, "over");
    let sent = Op {
        id: over.clone(),
        ..op("over", transfer(20, "a"))
    };
    let sent = scene.memory.call(&at("b", 0), sent.into()).await.unwrap();
    assert!(matches!(sent, Ok(Reply::Recorded(State::Sent { .. }, _))));
    (b, over)
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_the_lost_segment_may_have_spent_does_not_go_back_to_its_source() {
    for credited in [true, false] {
        let scene = Scene::new(Durability::Memory).await;
        let (b, over) = sent_from_b(&scene).await;
        if credited {
            let credit = credit(&over, "b", 20, "a");
            scene.tell(1, credit).await.unwrap();
            let spends = home(1, NOW, "spends");
            scene.counter.deduct(&spends, amount(30)).await.unwrap();
        }
        scene.lose(1);
        let swept = b.sweep().await.unwrap();
        assert!(
            matches!(&swept.errors[..], [CounterError::TransferUnfinished { because }]
                if matches!(**because, CounterError::Lost { .. })),
            "{swept:?}"
        );
        scene.counter.accept().await.unwrap();
        assert_eq!(b.sweep().await.unwrap().delivered, 1);
        let balance = b.exact_balance().await.unwrap();
        assert_eq!((balance.available, balance.held), (30, 0));
        assert_eq!(scene.available().await, 100);
        // Later ones arrive.
        scene.skew_passes();
        let next = home(1, scene.now(), "next");
        b.transfer(&next, amount(5), &scene.counter).await.unwrap();
        assert_eq!(scene.available().await, 105);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_was_sent_from_the_lost_segment_ends() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let b = account_b(&scene).await;
    let over = credited_to_b(&scene).await;
    scene.lose(1);
    assert_eq!(b.sweep().await.unwrap().errors.len(), 1);
    a.accept().await.unwrap();
    let swept = b.sweep().await.unwrap();
    assert_eq!((swept.unpinned, swept.errors.len()), (1, 0), "{swept:?}");
    assert_eq!(b.exact_balance().await.unwrap().available, 8);
    assert_eq!(scene.available().await, 100);
    let finish = FinishTransfer {
        id: over.clone(),
        refused: vec![account("b")],
        generation: 1,
        caller: OTHER,
    };
    let find = Find {
        id: over,
        generation: 1,
    };
    for request in [Request::from(finish), find.into()] {
        let answer = scene.tell(1, request).await;
        assert!(matches!(answer, Err(Refusal::TooOld { .. })), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transfer_to_an_account_that_lost_its_manifest_alone_does_not_go_back_to_its_source() {
    let scene = Scene::new(Durability::Memory).await;
    let (_, over) = sent_from_b(&scene).await;
    let credit = credit(&over, "b", 20, "a");
    scene.tell(1, credit).await.unwrap();
    let spends = home(1, NOW, "spends");
    scene.counter.deduct(&spends, amount(30)).await.unwrap();
    let storage = scene.without_manifests();
    let b = Counter::open(storage, account("b"));
    assert_eq!(b.sweep().await.unwrap().delivered, 1);
    assert_eq!(b.exact_balance().await.unwrap().available, 30);
}

#[tokio::test(start_paused = true)]
async fn transfers_held_by_a_lost_segment_are_lost_and_a_repeat_says_so() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let held = home(1, NOW, "held");
    a.reserve(&held, amount(6), NOW + 900).await.unwrap();
    scene.lose(1);
    a.accept().await.unwrap();
    for ended in [a.confirm(&held).await, a.cancel(&held).await] {
        let too_old = matches!(ended, Err(CounterError::Refused(Refusal::TooOld { .. })));
        assert!(too_old, "{ended:?}");
    }
    let balance = a.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.held), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn a_transfer_comes_back_from_an_account_that_is_gone_since_its_manifest_was_read() {
    let scene = Scene::new(Durability::Memory).await;
    let (b, over) = sent_from_b(&scene).await;
    let terms = terms_of(&scene.counter).await;
    let gone = Manifest::absent(terms);
    scene.replace(gone).await;
    let transferred = b.transfer(&over, amount(20), &scene.counter).await;
    let refused = matches!(transferred, Err(CounterError::TransferRefused { .. }));
    assert!(refused, "{transferred:?}");
    let balance = b.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.held), (50, 0));
    let another = home(1, NOW, "another");
    let transferred = b.transfer(&another, amount(20), &scene.counter).await;
    let nowhere = matches!(transferred, Err(CounterError::NoDestination { .. }));
    assert!(nowhere, "{transferred:?}");
}

#[tokio::test(start_paused = true)]
async fn a_transfer_finds_an_account_that_was_created_again_elsewhere() {
    let scene = Scene::new(Durability::Memory).await;
    let (b, over) = sent_from_b(&scene).await;
    let terms = terms_of(&scene.counter).await;
    let elsewhere = |_: &[u32], more| vec![1; more as usize];
    let again = Manifest::new(terms, 2, elsewhere).unwrap();
    scene.replace(again).await;
    b.transfer(&over, amount(20), &scene.counter).await.unwrap();
    assert_eq!(scene.available().await, 20);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_its_source_forgot_is_credited_once_when_repeated() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    let b = account_b(&scene).await;
    let segment = |segments: &mut BTreeMap<At, Segment>| segments[&at("a", 1)].clone();
    let earlier = scene.memory.with_segments(segment);
    let over = credited_to_b(&scene).await;
    scene.memory.with_segments(|segments| {
        let segment = segments.get_mut(&at("a", 1)).unwrap();
        *segment = earlier;
        segment.came_back();
    });
    let swept = b.sweep().await.unwrap();
    assert_eq!((swept.unpinned, swept.errors.len()), (0, 0), "{swept:?}");
    a.transfer(&over, amount(8), &b).await.unwrap();
    assert_eq!(b.exact_balance().await.unwrap().available, 8);
    assert_eq!(scene.available().await, 102);
}

#[tokio::test(start_paused = true)]
async fn a_process_goes_on_with_an_account_that_was_created_again_since() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    a.resegment(3).await.unwrap();
    let elsewhere = |_: &[u32], more| vec![1; more as usize];
    let again = Manifest::new(terms_of(a).await, 2, elsewhere).unwrap();
    scene.replace(again).await;
    scene.lose(2);
    a.deposit(&home(1, LATER, "in"), amount(5)).await.unwrap();
    let balance = a.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.lost), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_balance_is_that_of_an_account_that_was_created_again_since() {
    let scene = Scene::new(Durability::Memory).await;
    let elsewhere = |_: &[u32], more| vec![1; more as usize];
    let again = Manifest::new(terms_of(&scene.counter).await, 2, elsewhere).unwrap();
    scene.replace(again).await;
    let balance = scene.counter.balance().await.unwrap();
    assert_eq!((balance.available, balance.lost), (0, 0));
}

impl Scene {
    /// The account's manifest is `another`, and its segments are gone.
    async fn replace(&self, another: Manifest) {
        let a = account("a");
        let found: Option<VersionedManifest> = self.memory.read(&a).await.unwrap();
        let swapped = self.memory.swap(&a, found.unwrap().version, another).await;
        assert!(swapped.unwrap());
        self.lose(0);
        self.lose(1);
    }
}
