//! Money for several accounts: promised by all, decided at the source, paid, finished.

use std::sync::{Arc, atomic::Ordering};

use ringfence_segment_lock::{
    Changed, Counter, CounterError, Ended, Found, Manifests, Storage,
    limits::CLOCKS_APART_MS_MAX,
    memory::Memory,
    segment::{
        Cancel, Capture, Committed, Confirm, CreditId, CreditState, Expire, FinishTransfer, Forget,
        GiveCredit, Outcome, Pinned, PinnedCredit, Refusal,
    },
};

use super::{
    crashed::{CrashesAt, available, memory, purge},
    *,
};

fn committed(of: &[(&str, i64)], capture: Option<&str>) -> State {
    State::Committed(Box::new(Committed {
        legs: legs(of),
        capture: capture.map(|name| id(NOW, name)),
    }))
}

fn capture(name: &str, of: &[(&str, i64)]) -> Capture {
    Capture {
        id: id(NOW, "a"),
        capture: id(NOW, name),
        legs: legs(of),
        generation: 1,
        caller: ME,
    }
}

fn finish(refused: &[&str]) -> FinishTransfer {
    FinishTransfer {
        id: id(NOW, "a"),
        refused: refused.iter().map(|name| account(name)).collect(),
        generation: 1,
        caller: ME,
    }
}

/// A segment with 2, and 7 reserved.
fn reserved() -> Segment {
    let mut segment = segment(9);
    let reserve = op("a", reserve(7, NOW + 10));
    segment.apply(&reserve.into(), NOW).unwrap();
    segment
}

fn confirm_part(value: i64) -> Confirm {
    Confirm {
        id: id(NOW, "a"),
        amount: Some(amount(value)),
        generation: 1,
        caller: ME,
    }
}

#[test]
fn a_part_of_a_reservation_is_spent_and_the_rest_comes_back() {
    let mut segment = reserved();
    let above = Err(Refusal::AboveReserved {
        amount: 8,
        reserved: 7,
    });
    nothing(&mut segment, confirm_part(8), above);
    once(&mut segment, confirm_part(5), recorded(State::Confirmed));
    assert_eq!((segment.value, segment.held), (4, 0));
    nothing(&mut segment, confirm_part(7), recorded(State::Confirmed));
}

#[test]
fn a_capture_stands_from_its_decision_on() {
    let mut segment = reserved();
    let above = Err(Refusal::AboveReserved {
        amount: 8,
        reserved: 7,
    });
    nothing(&mut segment, capture("x", &[("b", 5), ("c", 3)]), above);
    let legs = [("b", 4), ("c", 2)];
    let decided = recorded(committed(&legs, Some("x")));
    once(&mut segment, capture("x", &legs), decided.clone());
    assert_eq!((segment.value, segment.held), (3, 6));
    // The same legs by another id, and other ones.
    nothing(&mut segment, capture("y", &legs), decided.clone());
    let other = capture("x", &[("b", 4), ("c", 1)]);
    nothing(&mut segment, other, Err(Refusal::Conflict));
    let cancel = Cancel {
        id: id(NOW, "a"),
        generation: 1,
        caller: ME,
    };
    nothing(&mut segment, cancel, decided.clone());
    nothing(&mut segment, confirm_part(1), decided);
    let before = segment.clone();
    let expired = segment.apply(&Expire.into(), NOW + 10);
    assert_eq!(expired, Ok(Reply::Expired(0)));
    assert_eq!(segment, before);
}

#[test]
fn a_capture_ends_with_the_answers_of_all_its_accounts() {
    let legs = [("b", 4), ("c", 2)];
    for (refused, end, value) in [
        (&[][..], State::Confirmed, 3),
        (&["c"], State::Confirmed, 5),
        (&["b", "c"], State::Cancelled, 9),
    ] {
        let mut segment = reserved();
        nothing(&mut segment, finish(&[]), Err(Refusal::Conflict));
        segment.apply(&capture("x", &legs).into(), NOW).unwrap();
        once(&mut segment, finish(refused), recorded(end.clone()));
        assert_eq!((segment.value, segment.held), (value, 0), "{refused:?}");
        nothing(&mut segment, finish(&["b"]), recorded(end));
        assert_eq!(segment.sent.len(), 0);
    }
}

#[test]
fn a_transfer_of_several_legs_is_held_and_ends() {
    let of = [("b", 4), ("c", 2)];
    for (refused, end, value) in [
        (&[][..], State::Delivered, 3),
        (&["c", "b"], State::Returned, 9),
    ] {
        let mut segment = segment(9);
        let change = Change::TransferLegs { legs: legs(&of) };
        let decided = recorded(committed(&of, None));
        once(&mut segment, op("a", change), decided);
        assert_eq!((segment.value, segment.held), (3, 6));
        // It is no reservation.
        nothing(&mut segment, confirm_part(1), Err(Refusal::Conflict));
        once(&mut segment, finish(refused), recorded(end));
        assert_eq!((segment.value, segment.held), (value, 0));
    }
}

fn promise(value: i64, is_promise: bool) -> GiveCredit {
    GiveCredit {
        id: CreditId {
            id: id(NOW, "x"),
            from: account("b"),
            reservation: Some(id(NOW, "a")),
        },
        content: 1,
        amount: amount(value),
        unit: Unit::NONE,
        is_promise,
        generation: 1,
        caller: ME,
    }
}

fn forget() -> Forget {
    Forget {
        id: promise(1, true).id,
        generation: 1,
    }
}

#[test]
fn a_promise_keeps_room_and_is_kept_in_a_closed_account() {
    let mut segment = segment(i64::MAX - 5);
    once(&mut segment, promise(3, true), Ok(Reply::Promised));
    assert_eq!((segment.value, segment.promised), (i64::MAX - 5, 3));
    let full = Refusal::Full {
        owned: i64::MAX - 2,
        amount: 3,
        max: i64::MAX,
    };
    nothing(&mut segment, op("d", deposit(3)), Err(full));
    segment.close().unwrap();
    let listed = PinnedCredit {
        id: promise(3, true).id,
        promised_ms: Some(NOW),
    };
    let pinned = segment.pinned_after(&Pinned { after: None });
    assert_eq!(pinned, Ok(Reply::Pinned(vec![listed])));
    let credited = Ok(Reply::Credited(Outcome::Credited));
    once(&mut segment, promise(3, false), credited.clone());
    assert_eq!((segment.value, segment.promised), (i64::MAX - 2, 0));
    nothing(&mut segment, promise(3, true), credited.clone());
    once(&mut segment, forget(), Ok(Reply::Done));
    nothing(&mut segment, promise(3, false), credited);
}

#[test]
fn a_promise_that_is_taken_back_is_refused_for_good() {
    let mut segment = segment(0);
    once(&mut segment, promise(3, true), Ok(Reply::Promised));
    // A repeat is a promise of now.
    let again = segment.apply(&promise(3, true).into(), NOW + 5);
    assert_eq!(again, Ok(Reply::Promised));
    let state = segment.credits[&promise(3, true).id].state;
    let at_ms = NOW + 5;
    let amount = amount(3);
    assert_eq!(state, CreditState::Promised { amount, at_ms });
    // Never forgotten, however old.
    assert_eq!(segment.purge(NOW + 9_000_000), Ok(Reply::Purged(0)));
    once(&mut segment, forget(), Ok(Reply::Done));
    assert_eq!((segment.value, segment.promised), (0, 0));
    for is_promise in [true, false] {
        let refused = Ok(Reply::Credited(Outcome::Refused));
        nothing(&mut segment, promise(3, is_promise), refused);
    }
}

#[test]
fn a_promise_in_doubt_is_not_answered() {
    let mut segment = segment(0);
    once(&mut segment, promise(3, true), Ok(Reply::Promised));
    segment.doubtful = true;
    for is_promise in [true, false] {
        let doubtful = Err(Refusal::Doubtful);
        nothing(&mut segment, promise(3, is_promise), doubtful);
    }
}

const LEGS: [(&str, i64); 2] = [("b", 4), ("c", 3)];

/// Accounts `a`, with 20, `b` and `c`.
async fn three(storage: &Storage) -> [Counter; 3] {
    let terms = Terms {
        ids_max: 100,
        ..TERMS
    };
    let create = async |name| Counter::create(storage.clone(), account(name), terms, 1).await;
    let a = create("a").await.unwrap();
    a.deposit(&id(NOW, "funds"), amount(20)).await.unwrap();
    [a, create("b").await.unwrap(), create("c").await.unwrap()]
}

async fn balances(counters: &[Counter; 3]) -> [i128; 3] {
    let [a, b, c] = counters;
    [available(a).await, available(b).await, available(c).await]
}

/// How many transfers, captures and credits are not finished.
fn unfinished(memory: &Memory) -> usize {
    memory.with_segments(|segments| {
        let open = segments.values();
        open.map(|segment| segment.sent.len() + segment.pinned.len())
            .sum()
    })
}

async fn transfer_of(a: &Counter, name: &str, of: &[(&str, i64)]) -> Result<Changed, CounterError> {
    a.transfer_legs(&id(NOW, name), &legs(of)).await
}

async fn capture_of(
    a: &Counter,
    name: &str,
    of: &[(&str, i64)],
) -> Result<Changed<Ended>, CounterError> {
    a.capture(&id(NOW, "held"), &id(NOW, name), &legs(of)).await
}

async fn reserve_ten(a: &Counter) {
    let held = id(NOW, "held");
    a.reserve(&held, amount(10), NOW + 900).await.unwrap();
}

#[tokio::test]
async fn legs_arrive_and_the_rest_of_a_reservation_comes_back() {
    let (memory, _, storage) = memory();
    let all = three(&storage).await;
    for _ in 0..2 {
        transfer_of(&all[0], "over", &LEGS).await.unwrap();
        assert_eq!(balances(&all).await, [13, 4, 3]);
    }
    let found = all[0].find(&id(NOW, "over")).await.unwrap();
    assert_eq!(found, Found::Decided(State::Delivered));
    let all = three(&Storage::new(memory, 2)).await;
    reserve_ten(&all[0]).await;
    for _ in 0..2 {
        let captured = capture_of(&all[0], "x", &LEGS).await.unwrap();
        assert_eq!(captured.outcome, Ended::Confirmed);
        assert_eq!(balances(&all).await, [6, 8, 6]);
    }
    let ended = all[0].confirm(&id(NOW, "held")).await.unwrap();
    assert_eq!(ended.outcome, Ended::Confirmed);
}

#[tokio::test]
async fn nothing_moves_if_one_account_refuses() {
    let (memory, _, storage) = memory();
    let all = three(&storage).await;
    let [a, _, c] = &all;
    c.close().await.unwrap();
    reserve_ten(a).await;
    let to = |error: &CounterError| match error {
        CounterError::TransferRefused { to } => Some(to.clone()),
        _ => None,
    };
    for nth in 0..2 {
        let refused = [
            transfer_of(a, "over", &LEGS).await.unwrap_err(),
            capture_of(a, "w", &LEGS).await.unwrap_err(),
        ];
        // The promise of the other one is taken back, so it refuses from then on.
        let refused_by = ["c", "b"].map(account)[nth].clone();
        assert_eq!(
            refused.each_ref().map(to),
            [(); 2].map(|()| Some(refused_by.clone()))
        );
        assert_eq!(balances(&all).await, [10, 0, 0]);
        assert_eq!(unfinished(&memory), 0);
    }
    let missing = transfer_of(a, "no", &[("b", 1), ("d", 1)]);
    let missing = missing.await.unwrap_err();
    assert!(
        matches!(missing, CounterError::NoDestination { .. }),
        "{missing:?}"
    );
    let own = transfer_of(a, "no", &[("b", 1), ("a", 1)]);
    assert!(matches!(own.await.unwrap_err(), CounterError::Legs(_)));
    let short = transfer_of(a, "no", &[("b", 11)]);
    assert!(matches!(
        short.await.unwrap_err(),
        CounterError::Insufficient
    ));
    let above = capture_of(a, "y", &[("b", 11)]);
    let above = above.await.unwrap_err();
    let is_above = matches!(above, CounterError::Refused(Refusal::AboveReserved { .. }));
    assert!(is_above, "{above:?}");
    assert_eq!(balances(&all).await, [10, 0, 0]);
    // The reservation is still there, for another capture.
    let again = capture_of(a, "z", &[("b", 1)]);
    assert_eq!(again.await.unwrap().outcome, Ended::Confirmed);
    assert_eq!(balances(&all).await, [19, 1, 0]);
    for counter in &all {
        assert_eq!(counter.sweep().await.unwrap().errors.len(), 0);
    }
    assert_eq!(unfinished(&memory), 0);
}

/// A caller that stops at a step, by its request.
async fn crashing(memory: &Arc<Memory>, at: fn(&Request) -> bool) -> Counter {
    let memory = Arc::clone(memory);
    let segments = Arc::new(CrashesAt {
        memory: Arc::clone(&memory),
        at,
    });
    let storage = Storage::of(segments, memory as Arc<dyn Manifests>, 2);
    Counter::open(storage, account("a"))
}

fn gives(request: &Request) -> bool {
    matches!(request, Request::Credit(credit) if !credit.is_promise)
}

fn finishes(request: &Request) -> bool {
    matches!(request, Request::FinishTransfer(_))
}

fn forgets(request: &Request) -> bool {
    matches!(request, Request::Forget(_))
}

#[tokio::test]
async fn what_was_decided_is_finished_by_any_sweep() {
    for at in [gives, finishes, forgets] {
        for sweeper in 0..3 {
            let (memory, clock, storage) = memory();
            let all = three(&storage).await;
            reserve_ten(&all[0]).await;
            let a = crashing(&memory, at).await;
            drop(transfer_of(&a, "over", &LEGS).await);
            drop(capture_of(&a, "x", &LEGS).await);
            // Long after the reservation would have expired.
            clock.store(NOW + 60_000, Ordering::Relaxed);
            for nth in [sweeper, 0, 1, 2] {
                let swept = all[nth].sweep().await.unwrap();
                assert_eq!(swept.errors.len(), 0, "{swept:?}");
                purge(&memory, &all[nth]).await;
            }
            assert_eq!(balances(&all).await, [6, 8, 6]);
            assert_eq!(unfinished(&memory), 0);
        }
    }
}

#[tokio::test]
async fn promises_of_a_caller_that_stopped_are_taken_back_after_a_minute() {
    let (memory, clock, storage) = memory();
    let all = three(&storage).await;
    let [a, b, c] = &all;
    reserve_ten(a).await;
    let decides = |request: &Request| matches!(request, Request::Op(_) | Request::Capture(_));
    let stopped = crashing(&memory, decides).await;
    drop(transfer_of(&stopped, "over", &LEGS).await);
    drop(capture_of(&stopped, "x", &LEGS).await);
    let promised = |memory: &Memory| {
        memory.with_segments(|segments| {
            let promised = |name| segments[&at(name, 0)].promised;
            (promised("b"), promised("c"))
        })
    };
    let sweep_all = async || {
        for counter in [b, c, a] {
            let swept = counter.sweep().await.unwrap();
            assert_eq!(swept.errors.len(), 0, "{swept:?}");
        }
    };
    sweep_all().await;
    assert_eq!(promised(&memory), (8, 6));
    // The reservation has expired by then, and the transfer is cancelled.
    clock.store(NOW + CLOCKS_APART_MS_MAX + 1, Ordering::Relaxed);
    sweep_all().await;
    sweep_all().await;
    assert_eq!(promised(&memory), (0, 0));
    let late = transfer_of(a, "over", &LEGS).await;
    let late = late.unwrap_err();
    let refused = matches!(late, CounterError::Cancelled | CounterError::Refused(_));
    assert!(refused, "{late:?}");
    assert_eq!(balances(&all).await, [20, 0, 0]);
}

#[tokio::test]
async fn an_account_with_a_promise_is_not_deleted_and_loses_no_segment() {
    let (memory, clock, storage) = memory();
    let [a, b, c] = three(&storage).await;
    b.resegment(2).await.unwrap();
    reserve_ten(&a).await;
    let decides = |request: &Request| matches!(request, Request::Capture(_));
    let stopped = crashing(&memory, decides).await;
    drop(capture_of(&stopped, "x", &LEGS).await);
    for counter in [&b, &c] {
        counter.close().await.unwrap();
        clock.fetch_add(2 * CLOCKS_APART_MS_MAX, Ordering::Relaxed);
        // The reservation is held for longer.
        memory.with_segments(|segments| {
            let held = State::Held {
                amount: amount(10),
                deadline_ms: u64::MAX,
            };
            let segment = segments.get_mut(&at("a", 0)).unwrap();
            segment.ids.get_mut(&id(NOW, "held")).unwrap().state = held;
            segment.due.clear();
        });
        let kept = counter.delete().await.unwrap_err();
        assert!(matches!(kept, CounterError::NotEmpty { .. }), "{kept:?}");
        assert_eq!(counter.inspect().await.unwrap().lost.0.len(), 0);
    }
}

#[tokio::test]
async fn a_leg_whose_promise_is_lost_comes_back() {
    let (memory, _, storage) = memory();
    let all = three(&storage).await;
    reserve_ten(&all[0]).await;
    let a = crashing(&memory, gives).await;
    let stopped = capture_of(&a, "x", &LEGS).await.unwrap_err();
    let unfinished = matches!(stopped, CounterError::TransferUnfinished { .. });
    assert!(unfinished, "{stopped:?}");
    // Account c comes back as it was before, closed.
    memory.with_segments(|segments| {
        let c = segments.get_mut(&at("c", 0)).unwrap();
        let lost: Vec<_> = c.credits.keys().cloned().collect();
        for id in lost {
            let Some(CreditState::Promised { amount, .. }) = c.credits.remove(&id).map(|c| c.state)
            else {
                panic!("{id:?} is promised");
            };
            c.pinned.remove(&id);
            c.promised -= amount.get();
        }
        c.closed = true;
    });
    for _ in 0..2 {
        let captured = capture_of(&all[0], "x", &LEGS).await.unwrap();
        assert_eq!(captured.outcome, Ended::Confirmed);
    }
    assert_eq!(balances(&all).await, [16, 4, 0]);
    assert_eq!(all[0].sweep().await.unwrap().errors.len(), 0);
}
