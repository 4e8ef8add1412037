//! Accounts are deleted, and created again under the same name.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ringfence_segment_lock::{
    Counter, CounterError, Manifest, ManifestError, Manifests, Remainder, Segments as _, Storage,
    limits::CLOCKS_APART_MS_MAX,
    memory::Memory,
    segment::{Close, CreditId, Find, GiveCredit, Outcome, Refusal, Remove},
};

use super::*;

/// How long segments remain after the last plan.
const REMAINS_MS: u64 = TERMS.skew_ms + CLOCKS_APART_MS_MAX;

/// An account, and the clock of its storage.
struct Scene {
    memory: Arc<Memory>,
    clock: Arc<AtomicU64>,
    storage: Storage,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(NOW));
        let told = Arc::clone(&clock);
        let memory = Arc::new(Memory::new(Box::new(move || told.load(Ordering::Relaxed))));
        let storage = Storage::new(Arc::clone(&memory), 1);
        Self {
            memory,
            clock,
            storage,
        }
    }

    async fn create(&self, name: &str, terms: Terms, segments: u32) -> Counter {
        let created = self.try_create(name, terms, segments).await;
        created.unwrap()
    }

    async fn try_create(
        &self,
        name: &str,
        terms: Terms,
        segments: u32,
    ) -> Result<Counter, CounterError> {
        let terms = Terms {
            ids_max: 1000,
            ..terms
        };
        Counter::create(self.storage.clone(), account(name), terms, segments).await
    }

    /// The last plan is so long ago that segments can be removed.
    fn time_passes(&self) {
        self.clock.fetch_add(REMAINS_MS + 1, Ordering::Relaxed);
    }

    fn id(&self, name: &str) -> RequestId {
        id(self.clock.load(Ordering::Relaxed), name)
    }

    fn segments(&self, name: &str) -> usize {
        let of = |at: &&At| at.account == account(name);
        self.memory
            .with_segments(|segments| segments.keys().filter(of).count())
    }
}

#[track_caller]
fn not_empty(deleted: Result<(), CounterError>) -> Remainder {
    match deleted {
        Err(CounterError::NotEmpty { remainder, .. }) => *remainder,
        deleted => panic!("{deleted:?}"),
    }
}

fn remove(credit: i64) -> Remove {
    Remove {
        generation: 1,
        credit,
        mark_ms: NOW,
        planned_ms: 0,
    }
}

#[test]
fn a_segment_goes_only_when_it_is_empty() {
    let gone = Ok(Reply::Removed);
    let is_kept = |segment: &mut Segment, remove: Remove| {
        let before = segment.clone();
        let answer = segment.apply(&remove.into(), NOW);
        assert_eq!(*segment, before);
        match answer {
            Ok(Reply::View(view)) => assert_eq!(view.value, segment.value),
            answer => panic!("{answer:?}"),
        }
    };
    let mut open = segment(0);
    is_kept(&mut open, remove(0));
    open.close().unwrap();
    nothing(&mut open, remove(0), gone.clone());
    let mut lent = segment(5);
    lent.close().unwrap();
    is_kept(&mut lent, remove(0));
    nothing(&mut lent, remove(5), gone);
    for change in [reserve(5, NOW + 10), transfer(5, "b")] {
        let mut held = segment(5);
        held.apply(&op("a", change).into(), NOW).unwrap();
        held.close().unwrap();
        is_kept(&mut held, remove(0));
    }
    let mut pinned = segment(0);
    let credit = GiveCredit {
        id: CreditId {
            id: id(NOW, "a"),
            from: account("b"),
            reservation: None,
        },
        content: 1,
        amount: amount(5),
        unit: Unit::NONE,
        is_promise: false,
        generation: 1,
        caller: ME,
    };
    let credited = pinned.apply(&credit.into(), NOW);
    assert_eq!(credited, Ok(Reply::Credited(Outcome::Credited)));
    pinned.apply(&op("b", deduct(5)).into(), NOW).unwrap();
    pinned.close().unwrap();
    is_kept(&mut pinned, remove(0));
}

#[test]
fn a_segment_goes_only_with_the_account_it_belongs_to_and_after_its_ids_are_marked() {
    let mut of_later = segment(0);
    of_later.generation = 2;
    of_later.close().unwrap();
    let layout = Err(Refusal::Layout { generation: 2 });
    nothing(&mut of_later, remove(0), layout);

    let mut decided = segment(1);
    decided.apply(&op("a", deduct(1)).into(), NOW).unwrap();
    decided.close().unwrap();
    let marked = |mark_ms| Remove {
        mark_ms,
        ..remove(0)
    };
    let later = Reply::Later {
        after_ms: NOW,
        now_ms: NOW,
    };
    nothing(&mut decided, marked(NOW - 1), Ok(later));
    let planned = |planned_ms| Remove {
        planned_ms,
        ..remove(0)
    };
    let busy = |retry_after_ms| Err(Refusal::Busy { retry_after_ms });
    let first = NOW - REMAINS_MS;
    nothing(&mut decided, planned(NOW), busy(REMAINS_MS + 1));
    nothing(&mut decided, planned(first), busy(1));
    nothing(&mut decided, planned(first - 1), Ok(Reply::Removed));

    decided.doubtful = true;
    nothing(&mut decided, remove(0), Err(Refusal::Doubtful));
}

#[tokio::test]
async fn an_empty_closed_account_is_deleted_and_its_name_can_be_used_again() {
    let scene = Scene::new();
    let counter = scene.create("a", TERMS, 3).await;
    let stale = Counter::open(scene.storage.clone(), account("a"));
    stale.balance().await.unwrap();
    let old = scene.id("in");
    counter.deposit(&old, amount(5)).await.unwrap();
    let open = counter.delete().await;
    assert!(matches!(
        open,
        Err(CounterError::Manifest(ManifestError::Open))
    ));
    counter.close().await.unwrap();
    let full = counter.delete().await;
    let left = Remainder {
        ledger: 5,
        held: 0,
        unfinished: 0,
    };
    assert_eq!(not_empty(full), left);
    counter.deduct(&scene.id("out"), amount(5)).await.unwrap();
    scene.time_passes();
    counter.delete().await.unwrap();
    assert_eq!(scene.segments("a"), 0);
    for counter in [&counter, &stale] {
        let found = counter.deposit(&scene.id("in"), amount(1)).await;
        assert!(matches!(found, Err(CounterError::NoAccount { .. })));
    }
    counter.delete().await.unwrap();
    let never = Counter::open(scene.storage.clone(), account("b"));
    let never = never.delete().await;
    assert!(matches!(never, Err(CounterError::NoAccount { .. })));

    scene.create("a", TERMS, 2).await;
    scene.clock.fetch_add(1, Ordering::Relaxed);
    // Of the former account's caller, too.
    for counter in [&counter, &stale] {
        let again = counter.deposit(&old, amount(5)).await;
        assert!(
            matches!(again, Err(CounterError::Refused(Refusal::TooOld { .. }))),
            "{again:?}"
        );
    }
    stale.deposit(&scene.id("new"), amount(1)).await.unwrap();
    assert_eq!(counter.exact_balance().await.unwrap().ledger, 1);
}

#[tokio::test]
async fn for_a_minute_segments_remain_until_a_sweep() {
    let scene = Scene::new();
    let counter = scene.create("a", TERMS, 2).await;
    counter.close().await.unwrap();
    counter.delete().await.unwrap();
    assert_eq!(scene.segments("a"), 2);
    let found = counter.balance().await;
    assert!(matches!(found, Err(CounterError::NoAccount { .. })));
    let again = scene.try_create("a", TERMS, 1).await;
    let again = again.unwrap_err();
    assert!(again.is_retryable(), "{again}");
    assert!(again.retry_after().is_some(), "{again}");
    scene.time_passes();
    let swept = counter.sweep().await;
    assert!(matches!(swept, Err(CounterError::NoAccount { .. })));
    assert_eq!(scene.segments("a"), 0);
    scene.create("a", TERMS, 1).await;
}

/// A caller finds the plan, and stalls until the account is deleted.
#[tokio::test]
async fn a_late_request_of_the_first_plan_makes_no_segment() {
    let scene = Scene::new();
    let counter = scene.create("a", TERMS, 1).await;
    counter.close().await.unwrap();
    scene.time_passes();
    counter.delete().await.unwrap();
    let create = Create {
        prepare: first_layout(),
        terms: TERMS,
        credit: 0,
        planned_ms: NOW,
    };
    let late = scene.memory.call(&at("a", 0), create.into()).await.unwrap();
    assert!(
        matches!(late, Err(Refusal::ClocksDiffer { .. })),
        "{late:?}"
    );
    assert_eq!(scene.segments("a"), 0);
}

#[tokio::test]
async fn a_plan_that_was_left_for_long_is_made_again() {
    let scene = Scene::new();
    let planned = Manifest::new(TERMS, 2, |_, more| vec![0; more as usize]).unwrap();
    let memory = &scene.memory;
    assert!(
        memory
            .swap(&account("a"), 0, planned.planned_at(NOW))
            .await
            .unwrap()
    );
    scene.time_passes();
    let counter = Counter::open(scene.storage.clone(), account("a"));
    counter.deposit(&scene.id("in"), amount(1)).await.unwrap();
    assert_eq!(scene.segments("a"), 2);
}

#[tokio::test]
async fn a_credit_line_goes_with_its_account_if_it_is_unused() {
    let scene = Scene::new();
    let terms = Terms {
        floor: -100,
        ..TERMS
    };
    let counter = scene.create("a", terms, 1).await;
    let used = scene.id("used");
    counter.deduct(&used, amount(30)).await.unwrap();
    counter
        .deposit(&scene.id("back"), amount(29))
        .await
        .unwrap();
    counter.close().await.unwrap();
    let ledger = counter.delete().await;
    assert_eq!(not_empty(ledger).ledger, -1);

    let counter = scene.create("b", terms, 1).await;
    counter.close().await.unwrap();
    // It could be used until the segment is gone.
    let early = counter.delete().await.unwrap_err();
    assert!(early.is_retryable(), "{early}");
    assert_eq!(counter.balance().await.unwrap().available, 100);
    scene.time_passes();
    counter.delete().await.unwrap();
    assert_eq!(scene.segments("b"), 0);

    let several = scene.create("c", terms, 2).await;
    several.close().await.unwrap();
    let refused = several.delete().await;
    assert!(matches!(
        refused,
        Err(CounterError::Manifest(ManifestError::CreditLine {
            segments: 2
        }))
    ));
}

/// Between the read of the balance and the removal of the only segment, its credit line is used.
#[tokio::test]
async fn an_account_that_is_not_empty_after_all_exists_again() {
    let scene = Scene::new();
    let terms = Terms {
        floor: -100,
        ids_max: 1000,
        ..TERMS
    };
    let counter = scene.create("a", terms, 1).await;
    counter.close().await.unwrap();
    scene.time_passes();
    let found = Manifests::<Manifest>::read(&*scene.memory, &account("a")).await;
    let found = found.unwrap().unwrap();
    let deleted = found.manifest.delete(NOW).unwrap();
    counter.deduct(&scene.id("used"), amount(1)).await.unwrap();
    let name = account("a");
    let swapped = scene.memory.swap(&name, found.version, deleted).await;
    assert!(swapped.unwrap());
    let refused = counter.delete().await;
    assert_eq!(not_empty(refused).ledger, -1);
    assert_eq!(counter.balance().await.unwrap().ledger, -1);
}

#[tokio::test]
async fn a_credit_of_a_deleted_account_is_unpinned() {
    let scene = Scene::new();
    let source = scene.create("a", TERMS, 1).await;
    let destination = scene.create("b", TERMS, 1).await;
    source.deposit(&scene.id("in"), amount(5)).await.unwrap();
    let over = scene.id("over");
    let outcome = source.transfer(&over, amount(5), &destination).await;
    outcome.unwrap();
    // The request that unpins it did not arrive.
    scene.memory.with_segments(|segments| {
        let segment = segments.get_mut(&at("b", 0)).unwrap();
        let credit = segment.credits.keys().next().unwrap().clone();
        segment.credits.get_mut(&credit).unwrap().state =
            ringfence_segment_lock::segment::CreditState::Pinned;
        segment.order.clear();
        segment.pinned.insert(credit);
    });
    source.close().await.unwrap();
    scene.time_passes();
    source.delete().await.unwrap();
    let swept = destination.sweep().await.unwrap();
    assert_eq!((swept.unpinned, swept.errors.len()), (1, 0), "{swept:?}");
}

#[tokio::test]
async fn a_transfer_of_before_is_refused_by_an_account_created_later() {
    let scene = Scene::new();
    let source = scene.create("a", TERMS, 1).await;
    let destination = scene.create("b", TERMS, 1).await;
    source.deposit(&scene.id("in"), amount(5)).await.unwrap();
    let over = scene.id("over");
    // It is sent, and not delivered yet.
    let mut op = op("over", transfer(5, "b"));
    op.id = over.clone();
    let sent = scene.memory.call(&at("a", 0), op.into()).await.unwrap();
    sent.unwrap();
    destination.close().await.unwrap();
    scene.time_passes();
    destination.delete().await.unwrap();
    scene.create("b", TERMS, 1).await;
    let refused = source.transfer(&over, amount(5), &destination).await;
    assert!(
        matches!(refused, Err(CounterError::TransferRefused { .. })),
        "{refused:?}"
    );
    assert_eq!(source.balance().await.unwrap().available, 5);
}

/// A transfer that has arrived, and is not finished; one of its accounts is being deleted, and that will be taken back.
async fn arrived_while_deleted(deleted: &str) -> (Scene, Counter, Counter) {
    let scene = Scene::new();
    let source = scene.create("a", TERMS, 1).await;
    let destination = scene.create("b", TERMS, 1).await;
    source.deposit(&scene.id("in"), amount(5)).await.unwrap();
    let mut op = op("over", transfer(5, "b"));
    op.id = scene.id("over");
    let credit = GiveCredit {
        id: CreditId {
            id: scene.id("over"),
            from: account("a"),
            reservation: None,
        },
        content: op.change.digest(),
        amount: amount(5),
        unit: Unit::NONE,
        is_promise: false,
        generation: destination.read_manifest().await.unwrap().generation(),
        caller: OTHER,
    };
    op.generation = source.read_manifest().await.unwrap().generation();
    for (name, request) in [("a", Request::from(op)), ("b", credit.into())] {
        let answer = scene.memory.call(&at(name, 0), request).await.unwrap();
        answer.unwrap();
    }
    let counter = [&source, &destination][usize::from(deleted == "b")];
    if deleted == "b" {
        destination
            .deduct(&scene.id("out"), amount(5))
            .await
            .unwrap();
    }
    counter.close().await.unwrap();
    let name = account(deleted);
    let found = Manifests::<Manifest>::read(&*scene.memory, &name).await;
    let found = found.unwrap().unwrap();
    let gone = found.manifest.delete(NOW).unwrap();
    let swapped = scene.memory.swap(&name, found.version, gone).await;
    assert!(swapped.unwrap());
    (scene, source, destination)
}

#[tokio::test]
async fn a_source_takes_nothing_back_while_the_deletion_of_the_destination_may_be_taken_back() {
    let (_scene, source, _) = arrived_while_deleted("b").await;
    let swept = source.sweep().await.unwrap();
    assert_eq!((swept.delivered, swept.errors.len()), (1, 0), "{swept:?}");
    assert_eq!(source.balance().await.unwrap().ledger, 0);
}

#[tokio::test]
async fn a_credit_stays_pinned_while_the_deletion_of_its_source_may_be_taken_back() {
    let (scene, source, destination) = arrived_while_deleted("a").await;
    let swept = destination.sweep().await.unwrap();
    assert_eq!((swept.unpinned, swept.errors.len()), (0, 1), "{swept:?}");
    scene.time_passes();
    drop(source.delete().await);
    let swept = destination.sweep().await.unwrap();
    assert_eq!(swept.errors.len(), 0, "{swept:?}");
    assert_eq!(destination.balance().await.unwrap().ledger, 5);
    assert_eq!(
        source
            .balance()
            .await
            .map(|balance| balance.ledger)
            .unwrap_or(0),
        0
    );
}

#[test]
fn a_removed_segment_is_gone_for_every_request() {
    let clock = Memory::new(Box::new(|| NOW));
    let call =
        |request: Request| futures_util::FutureExt::now_or_never(clock.call(&at("a", 0), request));
    let create = Create {
        prepare: first_layout(),
        terms: TERMS,
        credit: 0,
        planned_ms: NOW,
    };
    let told = |request: Request| call(request).unwrap().unwrap();
    assert_eq!(told(create.into()), Ok(Reply::Prepared));
    told(Close.into()).unwrap();
    assert_eq!(told(remove(0).into()), Ok(Reply::Removed));
    let find = Find {
        id: id(NOW, "a"),
        generation: 1,
    };
    assert_eq!(told(find.into()), Err(Refusal::Missing));
    assert_eq!(told(remove(0).into()), Err(Refusal::Missing));
}
