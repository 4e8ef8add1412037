//! Credit lines, ceilings, units, references, labels, and the balance after a request.

use std::{collections::BTreeMap, sync::Arc};

use ringfence_segment_lock::{
    BalanceAfter, Counter, CounterError, HistoryCursor, ManifestError, Reference, Storage,
    memory::Memory,
    segment::{CreditId, Forget, GiveCredit, Outcome, Refusal},
};

use super::*;

fn storage() -> Storage {
    Storage::new(Arc::new(Memory::new(Box::new(|| NOW))), 1)
}

async fn made(storage: &Storage, name: &str, terms: Terms, segments: u32) -> Counter {
    let counter = Counter::create(storage.clone(), account(name), terms, segments);
    counter.await.unwrap()
}

fn few_ids() -> Terms {
    Terms {
        ids_max: 100,
        ..TERMS
    }
}

fn credit_line(credit: i64) -> Terms {
    Terms {
        floor: -credit,
        ..few_ids()
    }
}

fn of_unit(code: &str) -> Terms {
    Terms {
        unit: code.parse().unwrap(),
        ..few_ids()
    }
}

#[tokio::test]
async fn a_credit_line_can_be_spent_to_its_end_from_every_home() {
    for segments in [1, 3] {
        let counter = made(&storage(), "a", credit_line(10), segments).await;
        for name in 0..10 {
            let one = id(NOW, &format!("one {name}"));
            counter.deduct(&one, amount(1)).await.unwrap();
        }
        let more = counter.deduct(&id(NOW, "more"), amount(1)).await;
        assert!(matches!(more, Err(CounterError::Insufficient)), "{more:?}");
        let balance = counter.exact_balance().await.unwrap();
        assert_eq!((balance.ledger, balance.available), (-10, 0));
        counter.deposit(&id(NOW, "in"), amount(4)).await.unwrap();
        let balance = counter.exact_balance().await.unwrap();
        assert_eq!((balance.ledger, balance.available), (-6, 4));
    }
}

#[tokio::test]
async fn a_segment_that_replaces_a_lost_one_has_no_credit() {
    let memory = Arc::new(Memory::new(Box::new(|| NOW)));
    let storage = Storage::new(Arc::clone(&memory), 1);
    let counter = made(&storage, "a", credit_line(10), 1).await;
    memory.with_segments(|segments| segments.clear());
    counter.accept().await.unwrap();
    let balance = counter.exact_balance().await.unwrap();
    assert_eq!((balance.ledger, balance.available), (-10, 0));
}

#[tokio::test]
async fn a_ceiling_refuses_deposits_and_returns_transfers() {
    let storage = storage();
    let capped = Terms {
        ceiling: Some(5),
        ..credit_line(10)
    };
    let capped = made(&storage, "capped", capped, 1).await;
    let payer = made(&storage, "payer", credit_line(100), 1).await;

    capped.deposit(&id(NOW, "in"), amount(3)).await.unwrap();
    let over = id(NOW, "over");
    let refused = capped.deposit(&over, amount(3)).await.unwrap_err();
    let full = Refusal::Full {
        owned: 3,
        amount: 3,
        max: 5,
    };
    assert!(matches!(&refused, CounterError::Refused(refusal) if *refusal == full));
    let returned = payer.transfer(&id(NOW, "t"), amount(3), &capped).await;
    assert!(matches!(
        returned,
        Err(CounterError::TransferRefused { .. })
    ));

    // Held money counts, because it may come back.
    let held = id(NOW, "held");
    capped.reserve(&held, amount(10), NOW + 500).await.unwrap();
    assert!(capped.deposit(&over, amount(3)).await.is_err());
    capped.confirm(&held).await.unwrap();
    capped.deposit(&over, amount(12)).await.unwrap();
    assert_eq!(capped.exact_balance().await.unwrap().ledger, 5);

    let wider = capped.resegment(2).await;
    let refused = CounterError::Manifest(ManifestError::Ceiling { value: 2 });
    assert_eq!(wider.unwrap_err().to_string(), refused.to_string());
}

#[tokio::test]
async fn money_moves_between_accounts_of_one_unit() {
    let storage = storage();
    let euros = made(&storage, "euros", of_unit("EUR"), 1).await;
    let dollars = made(&storage, "dollars", of_unit("USD"), 1).await;
    let others = made(&storage, "others", of_unit("EUR"), 1).await;
    euros.deposit(&id(NOW, "in"), amount(9)).await.unwrap();

    let order = id(NOW, "order");
    let error = euros.transfer(&order, amount(2), &dollars).await;
    let error = error.unwrap_err();
    assert!(matches!(error, CounterError::OtherUnit { .. }), "{error}");
    euros.transfer(&order, amount(2), &others).await.unwrap();
    // It is decided, and a repeat has the answer.
    let again = euros.transfer(&order, amount(2), &dollars).await;
    assert!(matches!(
        again,
        Err(CounterError::Refused(Refusal::Conflict))
    ));
    assert_eq!(euros.exact_balance().await.unwrap().available, 7);
}

/// The check before the transfer may have seen another account of that name.
#[test]
fn a_segment_refuses_money_of_another_unit() {
    let mut segment = segment(0);
    let credit = GiveCredit {
        id: CreditId {
            id: id(NOW, "a"),
            from: account("from"),
            reservation: None,
        },
        content: transfer(3, "b").digest(),
        amount: amount(3),
        unit: "EUR".parse().unwrap(),
        is_promise: false,
        generation: 1,
        caller: ME,
    };
    once(&mut segment, credit, Ok(Reply::Credited(Outcome::Refused)));
    assert_eq!(segment.value, 0);
}

#[tokio::test]
async fn every_answer_has_the_balance_of_an_account_of_one_segment() {
    let storage = storage();
    let counter = made(&storage, "a", credit_line(10), 1).await;
    let after = |ledger, available, held| {
        Some(BalanceAfter {
            ledger,
            available,
            held,
        })
    };
    let gift = id(NOW, "gift");
    let deposited = counter.deposit(&gift, amount(5)).await.unwrap();
    assert_eq!(deposited.balance, after(5, 15, 0));
    let taken = counter.deduct(&id(NOW, "b"), amount(8)).await.unwrap();
    assert_eq!(taken.balance, after(-3, 7, 0));
    let held = id(NOW, "held");
    let reserved = counter.reserve(&held, amount(2), NOW + 9).await.unwrap();
    assert_eq!(reserved.balance, after(-3, 5, 2));
    let ended = counter.confirm(&held).await.unwrap();
    assert_eq!(ended.balance, after(-5, 5, 0));
    let to = made(&storage, "to", few_ids(), 1).await;
    let sent = counter.transfer(&id(NOW, "t"), amount(1), &to).await;
    assert_eq!(sent.unwrap().balance, after(-6, 4, 0));
    // A repeat has the balance of its own time.
    let again = counter.deposit(&gift, amount(5)).await.unwrap();
    assert_eq!(again.balance, after(-6, 4, 0));

    let several = made(&storage, "several", few_ids(), 2).await;
    let deposited = several.deposit(&gift, amount(5)).await.unwrap();
    assert_eq!(deposited.balance, None);
}

#[tokio::test]
async fn the_log_keeps_the_reference_of_the_first_attempt() {
    let storage = storage();
    let counter = made(&storage, "a", few_ids(), 1).await;
    let [first, second] = [1, 2].map(|byte| Reference([byte; 16]));
    let gift = id(NOW, "gift");
    for reference in [first, second] {
        let gift = gift.with_reference(reference);
        counter.deposit(gift, amount(5)).await.unwrap();
    }
    counter.deduct(&id(NOW, "b"), amount(1)).await.unwrap();
    let log = counter.history(&HistoryCursor::default(), 10).await;
    let references = log.unwrap().effects.into_iter();
    let references: Vec<_> = references.map(|found| found.effect.reference).collect();
    assert_eq!(references, [Some(first), None]);

    let none = Terms {
        effects_max: 0,
        ..few_ids()
    };
    let none = made(&storage, "none", none, 1).await;
    let refused = none.deposit(gift.with_reference(first), amount(5)).await;
    assert!(matches!(
        refused,
        Err(CounterError::Refused(Refusal::NoLog))
    ));
}

#[tokio::test]
async fn labels_are_set_and_removed() {
    let counter = made(&storage(), "a", few_ids(), 1).await;
    let set = |pairs: &[(&str, Option<&str>)]| -> BTreeMap<String, Option<String>> {
        let pair =
            |&(name, value): &(&str, Option<&str>)| (name.to_owned(), value.map(ToOwned::to_owned));
        pairs.iter().map(pair).collect()
    };
    let first = set(&[("owner", Some("7")), ("kind", Some(""))]);
    for _ in 0..2 {
        counter.label(&first).await.unwrap();
    }
    counter
        .label(&set(&[("owner", None), ("tier", Some("gold"))]))
        .await
        .unwrap();
    let found = counter.inspect().await.unwrap().details.labels;
    let found: Vec<_> = found
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    assert_eq!(found, [("kind", ""), ("tier", "gold")]);

    let many = (0..17).map(|nth| (format!("l{nth}"), Some(String::new())));
    let long = "x".repeat(64);
    for (labels, words) in [
        (many.collect(), "labels is 19, must be at most 16"),
        (set(&[("", None)]), "label name is 0 bytes long"),
        (set(&[(&long, Some("x"))]), "label name is 64 bytes long"),
        (
            set(&[("x", Some(&long.repeat(4)))]),
            "label value is 256 bytes long",
        ),
    ] {
        let error = counter.label(&labels).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // They outlive a change of the segments.
    counter.resegment(2).await.unwrap();
    assert_eq!(counter.inspect().await.unwrap().details.labels.len(), 2);
}

#[test]
fn a_view_counts_transfers_until_they_are_finished_at_both_ends() {
    let mut segment = segment(5);
    segment
        .apply(&op("a", transfer(3, "b")).into(), NOW)
        .unwrap();
    let id = CreditId {
        id: id(NOW, "b"),
        from: account("from"),
        reservation: None,
    };
    let credit = GiveCredit {
        id: id.clone(),
        content: transfer(3, "b").digest(),
        amount: amount(3),
        unit: Unit::NONE,
        is_promise: false,
        generation: 1,
        caller: ME,
    };
    segment.apply(&credit.into(), NOW).unwrap();
    let unfinished = |segment: &Segment| match segment.inspect(NOW) {
        Ok(Reply::View(view)) => view.unfinished,
        other => panic!("{other:?}"),
    };
    assert_eq!(unfinished(&segment), 2);
    let generation = 1;
    let forget = Forget { id, generation };
    segment.apply(&forget.into(), NOW).unwrap();
    assert_eq!(unfinished(&segment), 1);
}

#[test]
fn limits_that_cannot_be_kept_are_refused() {
    let terms = |floor, ceiling| Terms {
        floor,
        ceiling,
        ..TERMS
    };
    for (terms, error) in [
        (
            terms(1, None),
            "floor is 1, must be -9223372036854775807 to 0",
        ),
        (
            terms(-5, Some(-6)),
            "ceiling is -6, must be -5 to 9223372036854775802",
        ),
        (
            terms(-5, Some(i64::MAX)),
            "ceiling is 9223372036854775807, must be -5 to 9223372036854775802",
        ),
    ] {
        assert_eq!(terms.check().unwrap_err().to_string(), error);
    }
    for terms in [
        terms(0, Some(0)),
        terms(-5, Some(-5)),
        terms(-i64::MAX, None),
    ] {
        terms.check().unwrap();
    }
}
