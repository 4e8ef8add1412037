//! A counter in memory, without any harm: what callers see.

use std::sync::Arc;

use ringfence_segment_lock::{
    Counter, CounterError, Effect, Ended, Reserved, Storage,
    memory::Memory,
    segment::{Lend, Refusal},
};

use crate::*;

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

/// Three segments; all of 10 is at the last, but 6 that it has lent to segment `to`.
async fn lent(to: u32) -> Counter {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let counter = counter(&Storage::new(Arc::clone(&memory), 1), "a", 3).await;
    let lend = Lend {
        to,
        seq: 1,
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
    let home: Vec<_> = home.filter(|id| id.hash() % 3 == 0).take(2).collect();
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
        assert_eq!(reserved, Reserved::Held);
        let done = match ended {
            Ended::Confirmed => counter.confirm(&id).await,
            _ => counter.cancel(&id).await,
        };
        assert_eq!(done.unwrap(), ended);
        let again = counter.reserve(&id, amount(4), NOW + 10).await.unwrap();
        assert_eq!(again, Reserved::Ended(ended));
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
    let other = Counter::create(storage, account("a"), Terms::default(), 2)
        .await
        .unwrap_err();
    assert!(
        matches!(other, CounterError::AccountExists { .. }),
        "{other}"
    );
}
