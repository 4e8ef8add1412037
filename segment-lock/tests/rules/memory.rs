//! A counter in memory, without any harm: what callers see.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use ringfence_segment_lock::{
    Counter, CounterError, Effect, Ended, Manifest, Manifests, Reserved, Segments, Storage,
    StorageError, VersionedManifest,
    memory::Memory,
    segment::{CreditId, GiveCredit, Lend, Outcome, Refusal},
};

use super::*;

fn storage() -> Storage {
    Storage::new(Arc::new(Memory::new(Box::new(|| NOW))), 1)
}

async fn counter(storage: &Storage, name: &str, segments: u32) -> Counter {
    let terms = Terms {
        ids_max: 1000,
        ..TERMS
    };
    Counter::create(storage.clone(), account(name), terms, segments)
        .await
        .unwrap()
}

#[tokio::test]
async fn money_is_found_wherever_it_is() {
    let counter = counter(&storage(), "a", 4).await;
    for name in 0..20 {
        counter
            .deposit(&id(NOW, &name.to_string()), amount(5))
            .await
            .unwrap();
    }
    counter.deduct(&id(NOW, "most"), amount(99)).await.unwrap();
    let error = counter
        .deduct(&id(NOW, "more"), amount(2))
        .await
        .unwrap_err();
    assert!(matches!(error, CounterError::Insufficient), "{error}");
    assert!(!error.is_retryable());
    counter.deposit(&id(NOW, "later"), amount(5)).await.unwrap();
    let again = counter
        .deduct(&id(NOW, "more"), amount(2))
        .await
        .unwrap_err();
    assert!(matches!(again, CounterError::Insufficient), "{again}");
    assert_eq!(counter.exact_balance().await.unwrap().available, 6);
    assert_eq!(counter.balance().await.unwrap().available, 6);
}

#[tokio::test]
async fn a_home_that_has_no_room_for_half_borrows_what_it_has_room_for() {
    const PART: i64 = 1_000_000_000_000_000_000;
    let counter = counter(&storage(), "a", 2).await;
    let home = |index| {
        let mut ids = (0..).map(|name| id(NOW, &format!("home {index} {name}")));
        ids.find(|id| id.hash(HashKey::default()) % 2 == index)
            .unwrap()
    };
    counter.deposit(&home(0), amount(5 * PART)).await.unwrap();
    counter.deposit(&home(1), amount(9 * PART)).await.unwrap();
    let mut ids = (0..).map(|name| id(NOW, &format!("deducts {name}")));
    let deducts = ids.find(|id| id.hash(HashKey::default()) % 2 == 0).unwrap();
    counter.deduct(&deducts, amount(6 * PART)).await.unwrap();
    let left = counter.exact_balance().await.unwrap().available;
    assert_eq!(left, i128::from(8 * PART));
}

/// Three segments; all of 10 is at the last, but 6 that it has lent to segment `to`.
async fn lent(to: u32) -> Counter {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let counter = counter(&Storage::new(Arc::clone(&memory), 1), "a", 3).await;
    let lend = Lend {
        to,
        landed: 0,
        want: amount(6),
        caller: OTHER,
    };
    memory.with_segments(|segments| {
        let last = segments.values_mut().last().unwrap();
        last.op(&op("in", deposit(10)), NOW).unwrap();
        last.lend(&lend, NOW).unwrap();
    });
    counter
}

#[tokio::test]
async fn money_that_somebody_left_in_flight_is_found() {
    let home = (0..).map(|name| id(NOW, &format!("request {name}")));
    let home: Vec<_> = home
        .filter(|id| id.hash(HashKey::default()) % 3 == 0)
        .take(2)
        .collect();
    for to in [0, 1] {
        let counter = lent(to).await;
        let balance = counter.balance().await.unwrap();
        assert_eq!((balance.available, balance.in_flight), (10, 6));
        for id in &home {
            counter.deduct(id, amount(5)).await.unwrap();
        }
        assert_eq!(counter.exact_balance().await.unwrap().available, 0);
    }
}

#[tokio::test]
async fn a_reservation_is_confirmed_or_cancelled() {
    let counter = counter(&storage(), "a", 2).await;
    counter.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    for (name, ended) in [("a", Ended::Confirmed), ("b", Ended::Cancelled)] {
        let id = id(NOW, name);
        let reserved = counter.reserve(&id, amount(4), NOW + 10).await.unwrap();
        assert_eq!(reserved.outcome, Reserved::Held);
        let done = match ended {
            Ended::Confirmed => counter.confirm(&id).await,
            _ => counter.cancel(&id).await,
        };
        assert_eq!(done.unwrap().outcome, ended);
        let again = counter.reserve(&id, amount(4), NOW + 10).await.unwrap();
        assert_eq!(again.outcome, Reserved::Ended(ended));
    }
    assert_eq!(counter.exact_balance().await.unwrap().available, 6);
    let unknown = counter.confirm(&id(NOW, "c")).await.unwrap_err();
    assert!(
        matches!(unknown, CounterError::UnknownReservation),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_transfer_arrives_or_comes_back() {
    let storage = storage();
    let [a, b] = [
        counter(&storage, "a", 3).await,
        counter(&storage, "b", 2).await,
    ];
    a.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    for _ in 0..2 {
        a.transfer(&id(NOW, "over"), amount(7), &b).await.unwrap();
    }
    b.close().await.unwrap();
    for _ in 0..2 {
        let refused = a
            .transfer(&id(NOW, "back"), amount(2), &b)
            .await
            .unwrap_err();
        assert!(
            matches!(refused, CounterError::TransferRefused { .. }),
            "{refused}"
        );
        assert_eq!(refused.effect(), Effect::None);
    }
    let closed = b.deposit(&id(NOW, "in"), amount(1)).await.unwrap_err();
    assert!(
        matches!(closed, CounterError::Refused(Refusal::Closed)),
        "{closed}"
    );
    let [in_a, in_b] = [
        a.exact_balance().await.unwrap(),
        b.exact_balance().await.unwrap(),
    ];
    assert_eq!((in_a.available, in_a.held, in_b.available), (3, 0, 7));
    assert_eq!(b.sweep().await.unwrap().unpinned, 0);
}

#[tokio::test]
async fn a_counter_is_resegmented_while_it_is_used() {
    let counter = counter(&storage(), "a", 1).await;
    let stale = Counter::open(storage(), account("none"));
    counter.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    for segments in [2, 3, 1] {
        counter.resegment(segments).await.unwrap();
        let name = format!("with {segments}");
        counter.deduct(&id(NOW, &name), amount(1)).await.unwrap();
    }
    assert_eq!(counter.exact_balance().await.unwrap().available, 7);
    let absent = stale.balance().await.unwrap_err();
    assert!(matches!(absent, CounterError::NoAccount { .. }), "{absent}");
}

#[tokio::test]
async fn an_account_is_created_once() {
    let storage = storage();
    let first = counter(&storage, "a", 2).await;
    first.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    let second = counter(&storage, "a", 2).await;
    assert_eq!(second.exact_balance().await.unwrap().available, 10);
    let other = Counter::create(storage, account("a"), Terms::in_memory(), 2)
        .await
        .unwrap_err();
    assert!(
        matches!(other, CounterError::AccountExists { .. }),
        "{other}"
    );
}

#[tokio::test]
async fn a_transfer_to_nobody_takes_nothing() {
    let storage = storage();
    let a = counter(&storage, "a", 2).await;
    a.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    let nobody = Counter::open(storage.clone(), account("b"));
    let over = id(NOW, "over");
    for _ in 0..2 {
        let error = a.transfer(&over, amount(7), &nobody).await.unwrap_err();
        let absent = matches!(error, CounterError::NoDestination { .. });
        assert!(absent && error.effect() == Effect::None, "{error}");
    }
    let balance = a.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.held), (10, 0));
    // The same request, once there is the account.
    let b = counter(&storage, "b", 2).await;
    a.transfer(&over, amount(7), &nobody).await.unwrap();
    assert_eq!(b.exact_balance().await.unwrap().available, 7);
}

/// An account `a` of one segment with a transfer of 7 to `b` under way, although there is no `b`.
async fn sent_to_nobody() -> (Arc<Memory>, Storage, Counter) {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let storage = Storage::new(Arc::clone(&memory), 1);
    let a = counter(&storage, "a", 1).await;
    a.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    let at = at("a", 0);
    let sent = op("over", transfer(7, "b"));
    memory.call(&at, sent.into()).await.unwrap().unwrap();
    (memory, storage, a)
}

#[tokio::test]
async fn a_transfer_that_finds_nobody_comes_back_and_a_late_credit_is_refused() {
    for swept in [true, false] {
        let (memory, storage, a) = sent_to_nobody().await;
        let nobody = Counter::open(storage.clone(), account("b"));
        if swept {
            assert_eq!(a.sweep().await.unwrap().returned, 1);
        }
        let error = a.transfer(&id(NOW, "over"), amount(7), &nobody).await;
        let refused = matches!(error, Err(CounterError::TransferRefused { .. }));
        assert!(refused, "{error:?}");
        let balance = a.exact_balance().await.unwrap();
        assert_eq!((balance.available, balance.held), (10, 0));
        assert!(matches!(
            nobody.balance().await,
            Err(CounterError::NoAccount { .. })
        ));

        // Another process has seen the account, and its credit comes now.
        let b = counter(&storage, "b", 1).await;
        let credit = GiveCredit {
            id: CreditId {
                id: id(NOW, "over"),
                from: account("a"),
                reservation: None,
            },
            content: transfer(7, "b").digest(),
            amount: amount(7),
            unit: Unit::NONE,
            is_promise: false,
            generation: 1,
            caller: OTHER,
        };
        let at = at("b", 0);
        let late = memory.call(&at, credit.into()).await.unwrap();
        assert_eq!(late, Ok(Reply::Credited(Outcome::Refused)));
        let error = a.transfer(&id(NOW, "over"), amount(7), &b).await;
        let refused = matches!(error, Err(CounterError::TransferRefused { .. }));
        assert!(refused, "{error:?}");
        // A later one arrives.
        a.transfer(&id(NOW + 1, "next"), amount(3), &b)
            .await
            .unwrap();
        assert_eq!(b.exact_balance().await.unwrap().available, 3);
        assert_eq!(a.exact_balance().await.unwrap().available, 7);
    }
}

#[tokio::test]
async fn a_transfer_that_was_sent_to_nobody_arrives_if_the_account_is_created_first() {
    let (_, storage, a) = sent_to_nobody().await;
    let b = counter(&storage, "b", 2).await;
    assert_eq!(a.sweep().await.unwrap().delivered, 1);
    assert_eq!(b.exact_balance().await.unwrap().available, 7);
    assert_eq!(a.exact_balance().await.unwrap().held, 0);
}

/// Manifests of which one is about to be created when somebody first finds it missing.
#[derive(Debug)]
struct CreatedMeanwhile {
    memory: Arc<Memory>,
    reads: AtomicU64,
}

#[async_trait]
impl Manifests for CreatedMeanwhile {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest>, StorageError> {
        let found = self.memory.read(name).await;
        // The second read of the missing manifest is the one before the refusal is written.
        if *name == account("b") && self.reads.fetch_add(1, Ordering::Relaxed) == 1 {
            counter(&Storage::new(Arc::clone(&self.memory), 3), "b", 1).await;
        }
        found
    }

    async fn swap(
        &self,
        name: &Account,
        expected: u64,
        manifest: Manifest,
    ) -> Result<bool, StorageError> {
        self.memory.swap(name, expected, manifest).await
    }
}

#[tokio::test]
async fn a_refusal_is_not_written_over_an_account_created_meanwhile() {
    let (memory, _, _) = sent_to_nobody().await;
    let manifests = Arc::new(CreatedMeanwhile {
        memory: Arc::clone(&memory),
        reads: AtomicU64::new(0),
    });
    let storage = Storage::of(memory, manifests, 2);
    let [a, b] = ["a", "b"].map(|name| Counter::open(storage.clone(), account(name)));
    assert_eq!(a.sweep().await.unwrap().delivered, 1);
    assert_eq!(b.exact_balance().await.unwrap().available, 7);
    assert_eq!(a.exact_balance().await.unwrap().available, 3);
}
