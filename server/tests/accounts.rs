//! Counters and latches of the library: the same tests on the servers and over the service; and those of coordinators
//! that fail.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{
    Client, Coordinators, Counter, LatchError, ListedAccount,
    counter::{
        AccountEffect, Amount, BalanceAfter, CounterError, Durability, Effect, Ended, Found,
        HistoryCursor, LostSegments, Reference, RequestId, Reserved, Terms,
        segment::{EffectKind, Refusal, State},
    },
};
use ringfence_test_support::{Relay, eventually};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    client::{Two, on_both, shared},
    scene::Scene,
};

const DEADLINE: Duration = Duration::from_secs(120);

/// The clocks of its callers and its shards are those of one host.
pub(crate) const TERMS: Terms = Terms {
    idempotency_for_ms: 60_000,
    idempotency_at_least_ms: 60_000,
    skew_ms: 200,
    ids_max: 100_000,
    ..Terms::in_memory()
};

on_both![
    a_repeat_by_another_process_takes_effect_once,
    reservations_end_once,
    a_transfer_arrives_once_or_takes_nothing,
    every_decision_is_found,
    the_log_is_every_effect_once,
    limits_units_and_labels_are_kept,
    accounts_are_listed,
    no_coin_is_lost_or_made_by_many_tasks,
    a_call_that_is_dropped_is_finished_by_its_repeat,
    an_account_is_looked_at_changed_and_closed,
    an_account_is_deleted_once_it_is_empty,
    refusals_say_what_became_of_the_request,
    a_latch_is_set_once_and_opens_by_distinct_requests,
    tasks_that_wait_for_a_latch_share_their_requests,
];

pub(crate) fn amount(value: i64) -> Amount {
    Amount::new(value).unwrap()
}

fn request(client: &Client, name: &str) -> RequestId {
    client.counters().request(name).unwrap()
}

/// The account with 100 coins in it, as both processes have it.
async fn hundred(Two { one, two, .. }: &Two, name: &str) -> (Counter, Counter) {
    let counters = one.counters();
    let ours = counters.create(name, TERMS, 3).await.unwrap();
    let gift = request(one, "gift");
    ours.deposit(&gift, amount(100)).await.unwrap();
    (ours, two.counters().open(name).unwrap())
}

/// The coins to spend, and those set aside.
async fn coins(counter: &Counter) -> (i128, i128) {
    let balance = counter.exact_balance().await.unwrap();
    (balance.available, balance.held)
}

async fn a_repeat_by_another_process_takes_effect_once(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    let order = request(&two.one, "order");
    for counter in [&ours, &theirs, &ours] {
        counter.deduct(&order, amount(30)).await.unwrap();
    }
    assert_eq!(coins(&theirs).await, (70, 0));
    let too_much = request(&two.two, "too much");
    for counter in [&theirs, &ours] {
        let refused = counter.deduct(&too_much, amount(71)).await;
        assert!(matches!(refused, Err(CounterError::Insufficient)));
    }
    let other = theirs.deduct(&order, amount(31)).await.unwrap_err();
    assert!(matches!(other, CounterError::Refused(Refusal::Conflict)));
    assert_eq!(theirs.balance().await.unwrap().available, 70);
}

async fn reservations_end_once(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    let reserve = async |name: &str, length: u64| {
        let id = request(&two.one, name);
        let until_ms = id.time_ms() + length;
        for counter in [&ours, &theirs] {
            let reserved = counter.reserve(&id, amount(10), until_ms).await;
            assert_eq!(reserved.unwrap().outcome, Reserved::Held);
        }
        id
    };
    let (spent, back) = (reserve("1", 30_000).await, reserve("2", 30_000).await);
    assert_eq!(coins(&ours).await, (80, 20));
    for counter in [&theirs, &ours] {
        assert_eq!(
            counter.confirm(&spent).await.unwrap().outcome,
            Ended::Confirmed
        );
        assert_eq!(
            counter.cancel(&spent).await.unwrap().outcome,
            Ended::Confirmed
        );
        assert_eq!(
            counter.cancel(&back).await.unwrap().outcome,
            Ended::Cancelled
        );
    }
    assert_eq!(coins(&ours).await, (90, 0));
    let early = request(&two.two, "cancelled before it comes");
    assert_eq!(
        theirs.cancel(&early).await.unwrap().outcome,
        Ended::Cancelled
    );
    let late = ours.reserve(&early, amount(1), early.time_ms() + 1000);
    let late = late.await.unwrap();
    assert_eq!(late.outcome, Reserved::Ended(Ended::Cancelled));
    let nobody = request(&two.one, "nobody");
    let unknown = ours.confirm(&nobody).await.unwrap_err();
    assert!(matches!(unknown, CounterError::UnknownReservation));
    assert!(unknown.is_retryable());
}

/// What an effect is, the amounts after it in its segment, and the name of its request, of an account of one segment.
fn told(effects: &[AccountEffect]) -> Vec<(String, i64, i64)> {
    let words = effects.iter().map(|found| {
        let kind = match &found.effect.kind {
            EffectKind::Deposited(id) => format!("deposited {}", id.name()),
            EffectKind::Reserved(id) => format!("reserved {}", id.name()),
            EffectKind::Confirmed(id) => format!("confirmed {}", id.name()),
            EffectKind::Sent(id, to) => format!("sent {} to {to}", id.name()),
            EffectKind::Delivered(id, to) => format!("delivered {} to {to}", id.name()),
            EffectKind::Received(credit) => {
                format!("received {} from {}", credit.id.name(), credit.from)
            }
            other => format!("{other:?}"),
        };
        (kind, found.effect.value, found.effect.held)
    });
    words.collect()
}

async fn limits_units_and_labels_are_kept(two: Two) {
    let counters = two.one.counters();
    let euros = Terms {
        floor: -10,
        ceiling: Some(5),
        unit: "EUR".parse().unwrap(),
        ..TERMS
    };
    let ours = counters.create("euros", euros, 1).await.unwrap();
    let again = counters.create("euros", TERMS, 1).await;
    assert!(matches!(again, Err(CounterError::AccountExists { .. })));
    let theirs = two.two.counters().open("euros").unwrap();
    let dollars = counters.create("dollars", TERMS, 1).await.unwrap();
    let order = request(&two.one, "order");
    let reference = Reference([7; 16]);
    for counter in [&ours, &theirs] {
        let made = counter.deduct(order.with_reference(reference), amount(4));
        let expected = BalanceAfter {
            ledger: -4,
            available: 6,
            held: 0,
        };
        assert_eq!(made.await.unwrap().balance, Some(expected));
    }
    let over = ours.deposit(&request(&two.one, "over"), amount(10)).await;
    assert!(over.unwrap_err().to_string().contains("at most 5"));
    let other = request(&two.one, "other");
    let other = ours.transfer(&other, amount(1), &dollars).await;
    let other = other.unwrap_err().to_string();
    assert!(other.contains("nothing was deducted"), "{other}");
    let log = theirs.history(&HistoryCursor::default(), 10).await.unwrap();
    assert_eq!(log.effects[0].effect.reference, Some(reference));
    assert_eq!(ours.exact_balance().await.unwrap().ledger, -4);

    let owner = |value: Option<&str>| [("owner".into(), value.map(Into::into))].into();
    ours.label(&owner(Some("7"))).await.unwrap();
    let found = theirs.inspect().await.unwrap().details;
    assert_eq!(
        (found.unit, found.floor, found.ceiling),
        (euros.unit, -10, Some(5))
    );
    assert_eq!(found.labels["owner"], "7");
    ours.label(&owner(None)).await.unwrap();
    assert!(theirs.inspect().await.unwrap().details.labels.is_empty());
}

async fn the_log_is_every_effect_once(two: Two) {
    let counters = two.one.counters();
    let ours = counters.create("logged", TERMS, 1).await.unwrap();
    let theirs = two.two.counters().open("logged").unwrap();
    let to = counters.create("to", TERMS, 1).await.unwrap();
    let ids = |name: &str| request(&two.one, name);
    let [gift, held, order] = ["gift", "held", "order"].map(ids);
    let until_ms = held.time_ms() + 30_000;
    for counter in [&ours, &theirs] {
        counter.deposit(&gift, amount(100)).await.unwrap();
        counter.reserve(&held, amount(5), until_ms).await.unwrap();
    }
    let first = theirs.history(&HistoryCursor::default(), 1).await.unwrap();
    assert_eq!(told(&first.effects), [("deposited gift".into(), 100, 0)]);
    assert!(!first.is_end && first.lost.is_empty());
    for _ in 0..2 {
        theirs.confirm(&held).await.unwrap();
        ours.transfer(&order, amount(30), &to).await.unwrap();
    }
    let rest = ours.history(&first.next, 1_000).await.unwrap();
    let expected = [
        ("reserved held", 95, 5),
        ("confirmed held", 95, 0),
        ("sent order to to", 65, 30),
        ("delivered order to to", 65, 0),
    ];
    let expected = expected.map(|(word, value, held)| (word.to_owned(), value, held));
    assert_eq!(told(&rest.effects), expected);
    assert!(rest.is_end && rest.effects.iter().all(|found| !found.follows_gap));
    let nothing = theirs.history(&rest.next, 1_000).await.unwrap();
    assert!(nothing.effects.is_empty() && nothing.is_end);
    let since = HistoryCursor::since(gift.time_ms() - 10_000);
    let received = to.history(&since, 1_000).await.unwrap();
    assert_eq!(
        told(&received.effects),
        [("received order from logged".into(), 30, 0)]
    );

    let terms = Terms {
        effects_max: 0,
        ..TERMS
    };
    let unlogged = counters.create("unlogged", terms, 1).await.unwrap();
    let refused = unlogged.history(&since, 1).await.unwrap_err();
    assert!(refused.to_string().contains("no log"), "{refused}");
    assert!(!refused.is_retryable());
}

async fn every_decision_is_found(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    let ids = |name: &str| request(&two.one, name);
    let found = async |id: &RequestId, expected: State| {
        for counter in [&ours, &theirs] {
            let found = counter.find(id).await.unwrap();
            assert_eq!(found, Found::Decided(expected.clone()), "{id}");
        }
    };
    let [order, much] = ["order", "much"].map(ids);
    assert_eq!(theirs.find(&order).await.unwrap(), Found::NeverSeen);
    ours.deduct(&order, amount(30)).await.unwrap();
    ours.deduct(&much, amount(71)).await.unwrap_err();
    found(&order, State::Done).await;
    found(&much, State::Insufficient).await;

    let [held, spent, back, due] = ["held", "spent", "back", "due"].map(ids);
    let until_ms = held.time_ms() + 30_000;
    for id in [&held, &spent, &back] {
        ours.reserve(id, amount(5), until_ms).await.unwrap();
    }
    let soon_ms = due.time_ms() + 1;
    ours.reserve(&due, amount(5), soon_ms).await.unwrap();
    ours.confirm(&spent).await.unwrap();
    ours.cancel(&back).await.unwrap();
    let is_held = State::Held {
        amount: amount(5),
        deadline_ms: until_ms,
    };
    found(&held, is_held).await;
    found(&spent, State::Confirmed).await;
    found(&back, State::Cancelled).await;
    eventually("it comes back", async || {
        ours.sweep().await.unwrap();
        theirs.find(&due).await.unwrap() == Found::Decided(State::Expired)
    })
    .await;

    let to = two.one.counters().create("to", TERMS, 1).await.unwrap();
    let [arrives, returns] = ["arrives", "returns"].map(ids);
    ours.transfer(&arrives, amount(5), &to).await.unwrap();
    to.close().await.unwrap();
    ours.transfer(&returns, amount(5), &to).await.unwrap_err();
    found(&arrives, State::Delivered).await;
    found(&returns, State::Returned).await;

    let terms = Terms {
        idempotency_for_ms: 1000,
        idempotency_at_least_ms: 1000,
        ..TERMS
    };
    let brief = two.one.counters().create("brief", terms, 1).await.unwrap();
    let old = ids("old");
    brief.deposit(&old, amount(1)).await.unwrap();
    eventually("it is forgotten", async || {
        let swept = brief.sweep().await.unwrap();
        assert!(swept.errors.is_empty(), "{swept:?}");
        let found = brief.find(&old).await.unwrap();
        matches!(found, Found::Forgotten { mark_ms } if mark_ms >= old.time_ms())
    })
    .await;
    let nobody = two.two.counters().open("nobody").unwrap();
    let absent = nobody.find(&order).await.unwrap_err();
    assert!(matches!(absent, CounterError::NoAccount { .. }));
    // What was asked for decided nothing.
    let never = ids("never");
    assert_eq!(ours.find(&never).await.unwrap(), Found::NeverSeen);
    theirs.deduct(&never, amount(1)).await.unwrap();
}

async fn accounts_are_listed(two: Two) {
    let counters = two.one.counters();
    for nth in 0..100 {
        let name = format!("list/{nth:02}");
        counters.create(&name, TERMS, 1).await.unwrap();
    }
    let other = two.one.counters_of("other").unwrap();
    other.create("list/elsewhere", TERMS, 1).await.unwrap();
    let (ours, _) = hundred(&two, "list/99x").await;
    let nobody = counters.open("list/nobody").unwrap();
    let lost = request(&two.one, "to nobody");
    ours.transfer(&lost, amount(1), &nobody).await.unwrap_err();
    let mut listed = BTreeMap::new();
    let mut pages = two.two.counters().list("list/");
    while let Some(page) = pages.next().await {
        for ListedAccount { account, found } in page.accounts.unwrap() {
            listed.insert(account.to_string(), found.unwrap());
        }
    }
    let names: Vec<String> = listed.keys().cloned().collect();
    let mut expected: Vec<String> = (0..100).map(|nth| format!("list/{nth:02}")).collect();
    expected.push("list/99x".into());
    assert_eq!(names, expected);
    let value = |name: &str| -> i64 { listed[name].views.values().map(|view| view.value).sum() };
    assert_eq!((value("list/99x"), value("list/07")), (100, 0));
}

async fn a_transfer_arrives_once_or_takes_nothing(two: Two) {
    let (ours, theirs) = hundred(&two, "from").await;
    let to = two.one.counters().create("to", TERMS, 1).await.unwrap();
    let theirs_to = two.two.counters().open("to").unwrap();
    let id = request(&two.one, "move");
    ours.transfer(&id, amount(40), &to).await.unwrap();
    theirs.transfer(&id, amount(40), &theirs_to).await.unwrap();
    assert_eq!((coins(&ours).await.0, coins(&to).await.0), (60, 40));

    let absent = two.one.counters().open("absent").unwrap();
    let id = request(&two.one, "nowhere");
    let refused = ours.transfer(&id, amount(1), &absent).await.unwrap_err();
    assert!(matches!(&refused, CounterError::NoDestination { to } if to.as_str() == "absent"));
    assert_eq!(refused.effect(), Effect::None);
    let refused = absent.transfer(&id, amount(1), &to).await.unwrap_err();
    assert!(matches!(refused, CounterError::NoAccount { account } if account.as_str() == "absent"));

    to.close().await.unwrap();
    let id = request(&two.one, "to a closed account");
    let refused = ours.transfer(&id, amount(1), &to).await.unwrap_err();
    assert!(matches!(&refused, CounterError::TransferRefused { to } if to.as_str() == "to"));
    assert_eq!((coins(&ours).await.0, coins(&to).await.0), (60, 40));
}

async fn no_coin_is_lost_or_made_by_many_tasks(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    let mut tasks = JoinSet::new();
    for task in 0..8_i64 {
        let client = [&two.one, &two.two][task as usize % 2].clone();
        tasks.spawn(async move {
            let counter = client.counters().open("coins").unwrap();
            let mut balance = 0;
            for nth in 0..12 {
                let id = request(&client, &format!("{task}.{nth}"));
                let (change, of) = (nth % 3 == 0, task + nth);
                let done = match change {
                    true => counter.deposit(&id, amount(of + 1)).await,
                    false => counter.deduct(&id, amount(of + 1)).await,
                };
                match done {
                    Ok(_) => balance += if change { of + 1 } else { -of - 1 },
                    Err(CounterError::Insufficient) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            balance
        });
    }
    let changes = timeout(DEADLINE, tasks.join_all()).await.unwrap();
    let sum = 100 + i128::from(changes.iter().sum::<i64>());
    assert_eq!(coins(&ours).await, (sum, 0));
    assert_eq!(theirs.balance().await.unwrap().available, sum);
}

async fn a_call_that_is_dropped_is_finished_by_its_repeat(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    for wait in 0..20 {
        let id = request(&two.one, &format!("{wait}"));
        let dropped = ours.deduct(&id, amount(1));
        let _ = timeout(Duration::from_micros(100 * wait), dropped).await;
        theirs.deduct(&id, amount(1)).await.unwrap();
    }
    assert_eq!(coins(&ours).await, (80, 0));
}

async fn an_account_is_looked_at_changed_and_closed(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    assert_eq!(theirs.segments().await.unwrap(), 3);
    let held = request(&two.one, "held");
    let until_ms = held.time_ms() + 500;
    ours.reserve(&held, amount(7), until_ms).await.unwrap();
    let found = theirs.inspect().await.unwrap();
    let sum = |part: fn(&ringfence_client::counter::segment::SegmentView) -> i64| -> i64 {
        found.views.values().map(part).sum()
    };
    assert_eq!(
        (found.views.len(), sum(|one| one.value), sum(|one| one.held)),
        (3, 93, 7)
    );
    assert!(found.is_sound() && found.lost == LostSegments::default());

    timeout(DEADLINE, theirs.resegment(2))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ours.segments().await.unwrap(), 2);
    eventually("a sweep gives the reservation back", async || {
        let swept = ours.sweep().await.unwrap();
        assert!(swept.errors.is_empty(), "{swept:?}");
        coins(&theirs).await == (100, 0)
    })
    .await;
    assert!(theirs.accept().await.unwrap().is_sound());

    theirs.close().await.unwrap();
    let late = request(&two.one, "late");
    let refused = ours.deposit(&late, amount(1)).await.unwrap_err();
    assert!(matches!(refused, CounterError::Refused(Refusal::Closed)));
    ours.deduct(&late, amount(100)).await.unwrap();
}

async fn an_account_is_deleted_once_it_is_empty(two: Two) {
    let (ours, theirs) = hundred(&two, "coins").await;
    let cannot = async |counter: &Counter, why: &str| {
        let refused = counter.delete().await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
        assert!(!refused.is_retryable(), "{refused:?}");
        assert_eq!(refused.effect_of_call(), Effect::None);
    };
    cannot(&theirs, "close it first").await;
    theirs.close().await.unwrap();
    cannot(&theirs, "its ledger balance is 100").await;
    let out = request(&two.one, "out");
    ours.deduct(&out, amount(100)).await.unwrap();
    theirs.delete().await.unwrap();
    for counter in [&theirs, &ours] {
        // A repeat.
        counter.delete().await.unwrap();
        let gone = counter.inspect().await.unwrap_err();
        assert!(matches!(gone, CounterError::NoAccount { .. }), "{gone}");
    }
    // In its first minute, its segments remain.
    let counters = two.one.counters();
    let early = counters.create("coins", TERMS, 3).await.unwrap_err();
    assert!(early.is_retryable() && early.retry_after().is_some());
    let (mut pages, mut names) = (counters.list(""), Vec::new());
    while let Some(page) = pages.next().await {
        names.extend(
            page.accounts
                .unwrap()
                .into_iter()
                .map(|listed| listed.account),
        );
    }
    assert!(
        names.iter().all(|name| name.as_str() != "coins"),
        "{names:?}"
    );
    let never = counters.open("never").unwrap().delete().await;
    assert!(matches!(never, Err(CounterError::NoAccount { .. })));
}

async fn refusals_say_what_became_of_the_request(two: Two) {
    let counters = two.one.counters();
    let coins = counters.create("coins", TERMS, 2).await.unwrap();
    counters.create("coins", TERMS, 5).await.unwrap();
    let other = Terms {
        ids_max: 9,
        ..TERMS
    };
    let exists = counters.create("coins", other, 2).await.unwrap_err();
    assert!(matches!(exists, CounterError::AccountExists { .. }));
    let many = counters.create("many", TERMS, 1025).await.unwrap_err();
    let never = counters.create(
        "never",
        Terms {
            skew_ms: 0,
            ..TERMS
        },
        1,
    );
    for (refused, field) in [
        (many, "segments"),
        (never.await.unwrap_err(), "skew_ms"),
        (counters.open("").unwrap_err(), "account name"),
        (coins.resegment(0).await.unwrap_err(), "segments"),
    ] {
        assert!(refused.to_string().contains(field), "{refused}");
        assert!(!refused.is_retryable(), "{refused}");
    }
    let absent = counters.open("absent").unwrap();
    let id = request(&two.one, "id");
    let refused = absent.deposit(&id, amount(1)).await.unwrap_err();
    assert!(matches!(&refused, CounterError::NoAccount { .. }));
    let found = (refused.is_retryable(), refused.effect_of_call());
    assert_eq!(found, (false, Effect::None));
    assert!(absent.balance().await.is_err() && absent.inspect().await.is_err());

    let later = RequestId::new(id.time_ms() + 60_000, "later").unwrap();
    let later = coins.deposit(&later, amount(1)).await.unwrap_err();
    assert!(later.is_retryable() && later.retry_after().is_some());
    let until_ms = id.time_ms() + TERMS.idempotency_for_ms + 1;
    let refused = coins.reserve(&id, amount(1), until_ms).await.unwrap_err();
    for error in [later, refused] {
        assert_eq!(
            (error.effect(), error.effect_of_call()),
            (Effect::None, Effect::None)
        );
    }
}

async fn a_latch_is_set_once_and_opens_by_distinct_requests(two: Two) {
    let (ours, theirs) = (
        two.one.latch("latch").unwrap(),
        two.two.latch("latch").unwrap(),
    );
    let first = request(&two.one, "1");
    let early = theirs.count_down(&first).await.unwrap_err();
    assert!(matches!(early, LatchError::NotSet(_)) && early.is_retryable());
    assert!(matches!(ours.remaining().await, Err(LatchError::NotSet(_))));
    let count = ours.set(0, Durability::Memory).await;
    assert!(matches!(count, Err(LatchError::Count(0))));
    for latch in [&ours, &theirs] {
        latch.set(2, Durability::Memory).await.unwrap();
    }
    let other = theirs.set(3, Durability::Memory).await.unwrap_err();
    assert!(matches!(other, LatchError::AlreadySet(_)) && !other.is_retryable());
    for latch in [&ours, &theirs, &ours] {
        latch.count_down(&first).await.unwrap();
        assert_eq!(latch.remaining().await.unwrap(), 1);
    }
    let late = ours.opened_within(Duration::from_millis(300)).await;
    assert!(matches!(late, Err(LatchError::TimedOut { .. })));
    for name in ["2", "3"] {
        let next = request(&two.two, name);
        theirs.count_down(&next).await.unwrap();
        assert_eq!(ours.remaining().await.unwrap(), 0);
    }
    timeout(DEADLINE, ours.opened()).await.unwrap().unwrap();
}

async fn tasks_that_wait_for_a_latch_share_their_requests(two: Two) {
    let mut waits = JoinSet::new();
    for task in 0..40 {
        let client = [&two.one, &two.two][task % 2].clone();
        waits.spawn(async move {
            client.latch("latch").unwrap().opened().await.unwrap();
        });
    }
    let latch = two.one.latch("latch").unwrap();
    latch.set(1, Durability::Memory).await.unwrap();
    // All processes make one request per 50 ms and process, at most.
    let (before, began) = (two.scene.script_calls().await, Instant::now());
    sleep(Duration::from_secs(1)).await;
    let made = two.scene.script_calls().await - before;
    let processes = 5;
    // And the one that was due when it began.
    let most = processes * (began.elapsed().as_millis() / 50 + 1);
    assert!(u128::from(made) <= most, "{made} calls, more than {most}");
    assert!(waits.try_join_next().is_none());
    latch.count_down(&request(&two.one, "1")).await.unwrap();
    timeout(DEADLINE, waits.join_all()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_wait_for_a_latch_make_one_call() {
    let scene = Scene::set_with(|config| config.limits.streams = 4).await;
    let client = Client::builder().coordinators(&*scene.url);
    let client = client.build().await.unwrap();
    let latch = client.latch("latch").unwrap();
    latch.set(1, Durability::Memory).await.unwrap();
    let mut waits = JoinSet::new();
    for _ in 0..20 {
        let latch = latch.clone();
        waits.spawn(async move { latch.opened().await });
    }
    // There is room for others on the connection.
    for _ in 0..20 {
        assert_eq!(latch.remaining().await.unwrap(), 1);
        sleep(Duration::from_millis(20)).await;
    }
    latch.count_down(&request(&client, "1")).await.unwrap();
    let opened = timeout(DEADLINE, waits.join_all()).await.unwrap();
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_go_on_at_the_next_coordinator_and_take_effect_once() {
    let scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    let port = |url: &str| url.rsplit(':').next().unwrap().parse().unwrap();
    // The session that the client was built by was at the spare one.
    let spare = Relay::to(port(&scene.url)).await;
    let used = Relay::to(port(&other.url)).await;
    let urls = [&spare, &used].map(|relay| format!("http://127.0.0.1:{}", relay.port()));
    let urls = Coordinators::new(urls);
    let client = Client::builder().coordinators(urls).build().await.unwrap();
    let coins = client.counters().create("coins", TERMS, 2).await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let client = client.clone();
        tasks.spawn(async move {
            let coins = client.counters().open("coins").unwrap();
            for nth in 0..60 {
                let id = request(&client, &format!("{task}.{nth}"));
                coins.deposit(&id, amount(1)).await.unwrap();
            }
        });
    }
    let latch = client.latch("latch").unwrap();
    latch.set(1, Durability::Memory).await.unwrap();
    let mut waits = JoinSet::new();
    let waiting = latch.clone();
    waits.spawn(async move { waiting.opened().await });
    // The connection ends while calls are under way, some of them without their answers.
    while coins.balance().await.unwrap().available < 100 {}
    drop(used);
    timeout(DEADLINE, tasks.join_all()).await.unwrap();
    assert_eq!(coins.exact_balance().await.unwrap().available, 480);
    latch.count_down(&request(&client, "1")).await.unwrap();
    let opened = timeout(DEADLINE, waits.join_all()).await.unwrap();
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");

    drop(spare);
    let id = request(&client, "to nobody");
    let unknown = coins.deposit(&id, amount(1)).await.unwrap_err();
    assert!(unknown.is_retryable(), "{unknown:?}");
    assert_eq!(unknown.effect_of_call(), Effect::Unknown);
    let unread = coins.balance().await.unwrap_err();
    assert!(unread.is_retryable(), "{unread:?}");
    assert_eq!(unread.effect_of_call(), Effect::None);
}
