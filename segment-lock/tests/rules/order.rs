//! The order of checks, and what each answers.

use ringfence_segment_lock::{
    Effect,
    segment::{Collect, Find, Freeze, Op, Prepare, Purge, Refusal, Refuse, Reply, State},
};

use super::*;

fn freeze(segment: &mut Segment, caller: Caller) {
    let collect = Collect {
        generation: segment.generation,
        freeze: Some(Freeze {
            caller,
            for_ms: 100,
        }),
    };
    let viewed = segment.collect(&collect, NOW);
    assert!(matches!(viewed, Ok(Reply::View(_))), "{viewed:?}");
}

const BUSY: Answer = Err(Refusal::Busy {
    retry_after_ms: 100,
});

#[test]
fn an_id_has_one_effect_and_one_answer() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deduct(3)), recorded(State::Done));
    once(&mut segment, op("b", deposit(3)), recorded(State::Done));
    assert_eq!((segment.value, segment.version), (5, 2));
    nothing(&mut segment, op("a", deduct(2)), Err(Refusal::Conflict));
}

#[test]
fn short_records_nothing() {
    let mut segment = segment(2);
    let before = segment.clone();
    assert!(
        matches!(segment.op(&op("a", deduct(3)), NOW), Ok(Reply::Short(view)) if view.value == 2)
    );
    assert_eq!(segment, before);
}

#[test]
fn amounts_that_do_not_fit_are_refused_before_any_write() {
    let mut segment = segment(i64::MAX - 10);
    once(
        &mut segment,
        op("held", reserve(10, NOW + 10)),
        recorded(State::Held {
            amount: amount(10),
            deadline_ms: NOW + 10,
        }),
    );
    let full = |amount| {
        Err(Refusal::Full {
            max: i64::MAX,
            owned: i64::MAX - 10,
            amount,
        })
    };
    nothing(&mut segment, op("a", deposit(11)), full(11));
    let lands = vec![loan(1, 1, 6)];
    let with_loan = Op {
        lands,
        ..op("a", deposit(5))
    };
    nothing(&mut segment, with_loan, full(11));
    once(&mut segment, op("a", deposit(10)), recorded(State::Done));
}

#[test]
fn a_final_answer_is_repeated_in_doubt_and_nothing_else_is_done() {
    let mut segment = segment(9);
    once(&mut segment, op("done", deduct(1)), recorded(State::Done));
    let insufficient = recorded(State::Insufficient);
    let short = refuse("short", deduct(99), segment.version);
    once(&mut segment, short.clone(), insufficient.clone());
    let held = State::Held {
        amount: amount(1),
        deadline_ms: NOW + 10,
    };
    let reserved = op("held", reserve(1, NOW + 10));
    once(&mut segment, reserved.clone(), recorded(held));
    segment.doubtful = true;

    nothing(&mut segment, op("done", deduct(1)), recorded(State::Done));
    nothing(&mut segment, op("done", deduct(2)), Err(Refusal::Conflict));
    nothing(&mut segment, short, insufficient.clone());
    nothing(&mut segment, op("short", deduct(99)), insufficient);
    let find = |name| Find {
        id: id(NOW, name),
        generation: 1,
    };
    nothing(&mut segment, find("done"), recorded(State::Done));

    // The end of a reservation, and requests that are not recorded, may be in what was lost.
    let doubtful = || Err(Refusal::Doubtful);
    nothing(&mut segment, reserved, doubtful());
    nothing(&mut segment, find("held"), doubtful());
    nothing(&mut segment, op("new", deduct(1)), doubtful());
    nothing(&mut segment, find("new"), doubtful());
    nothing(&mut segment, refuse("new", deduct(9), 0), doubtful());
    nothing(&mut segment, Purge, doubtful());
}

#[test]
fn a_recorded_answer_goes_before_the_layout() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    let plan = Prepare {
        generation: 9,
        base: 8,
        from_ms: NOW + 1,
        closed: false,
        mark_ms: 0,
        manifest: "layout".into(),
    };
    once(&mut segment, plan, Ok(Reply::Prepared));
    nothing(&mut segment, op("a", deduct(1)), recorded(State::Done));
    nothing(&mut segment, op("a", deduct(2)), Err(Refusal::Conflict));
    nothing(
        &mut segment,
        refuse("a", deduct(1), 0),
        recorded(State::Done),
    );
    let layout = Err(Refusal::Layout { generation: 9 });
    nothing(&mut segment, op("b", deduct(1)), layout);
}

#[test]
fn a_recorded_answer_goes_before_the_mark_and_the_freeze() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    freeze(&mut segment, OTHER);
    segment.mark_ms = NOW;
    nothing(&mut segment, op("a", deduct(1)), recorded(State::Done));
    let too_old = Err(Refusal::TooOld { mark_ms: NOW });
    nothing(&mut segment, op("b", deduct(1)), too_old);
    segment.mark_ms = 0;
    nothing(&mut segment, op("b", deduct(1)), BUSY);
}

#[test]
fn a_freeze_is_for_all_but_its_caller_and_ends_by_itself() {
    let mut segment = segment(5);
    freeze(&mut segment, ME);
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    let other = Op {
        caller: OTHER,
        ..op("b", deduct(1))
    };
    assert_eq!(segment.op(&other, NOW), BUSY);
    assert_eq!(
        state_in(segment.op(&other, NOW + 100)),
        recorded(State::Done)
    );
}

#[test]
fn an_id_from_the_future_is_refused() {
    let mut segment = segment(5);
    let ahead = |ms| Op {
        id: id(NOW + ms, "a"),
        ..op("a", deduct(1))
    };
    let refused = Err(Refusal::IdInFuture {
        ahead_ms: 51,
        skew_ms: 50,
    });
    nothing(&mut segment, ahead(51), refused);
    once(&mut segment, ahead(50), recorded(State::Done));
}

/// It would be remembered until the next request only. What was decided in time is known for longer.
#[test]
fn a_new_id_older_than_answers_are_remembered_is_not_applied() {
    let mut segment = segment(5);
    let at = |age_ms, name| Op {
        id: id(NOW - age_ms, name),
        ..op(name, deduct(1))
    };
    let since_ms = NOW - TERMS.idempotency_for_ms;
    let expired = Refusal::IdExpired { since_ms };
    assert_eq!(expired.effect(), Effect::None);
    let window_ms = TERMS.idempotency_for_ms;
    nothing(&mut segment, at(window_ms, "a"), Err(expired));
    let done = recorded(State::Done);
    once(&mut segment, at(window_ms - 1, "b"), done.clone());
    let again = segment.op(&at(window_ms - 1, "b"), NOW + 1);
    assert_eq!(state_in(again), done);
}

/// What makes room for it forgets later ids: it may not be repeated, but was not applied.
#[test]
fn a_new_id_that_is_forgotten_by_its_own_room_is_not_applied() {
    let mut segment = segment(9);
    for name in ["a", "b", "c", "d"] {
        once(&mut segment, op(name, deduct(1)), recorded(State::Done));
    }
    let before = segment.value;
    let late = Op {
        id: id(NOW - 1, "e"),
        ..op("e", deduct(1))
    };
    let later_ms = NOW + TERMS.idempotency_at_least_ms;
    let expired = Err(Refusal::IdExpired { since_ms: NOW });
    assert_eq!(segment.op(&late, later_ms), expired);
    assert_eq!(segment.value, before);
    let too_old = Err(Refusal::TooOld { mark_ms: NOW });
    assert_eq!(segment.op(&late, later_ms), too_old);
}

#[test]
fn as_many_ids_are_remembered_as_may_be() {
    let mut segment = segment(9);
    for name in ["a", "b", "c", "d"] {
        once(&mut segment, op(name, deduct(1)), recorded(State::Done));
    }
    let full = Err(Refusal::TooManyIds {
        ids_max: 4,
        retry_after_ms: 100,
    });
    nothing(&mut segment, op("e", deduct(1)), full);
    nothing(&mut segment, op("a", deduct(1)), recorded(State::Done));
    assert_eq!(segment.purge(NOW + 999), Ok(Reply::Purged(0)));
    assert_eq!(segment.purge(NOW + 1000), Ok(Reply::Purged(4)));
    let old = segment.op(&op("a", deduct(1)), NOW + 1000);
    assert_eq!(old, Err(Refusal::TooOld { mark_ms: NOW }));
}

#[test]
fn ids_are_forgotten_as_they_came() {
    let mut segment = segment(9);
    let ahead = Op {
        id: id(NOW + 50, "ahead"),
        ..op("a", deduct(1))
    };
    let held = State::Held {
        amount: amount(1),
        deadline_ms: NOW + 10,
    };
    once(
        &mut segment,
        op("held", reserve(1, NOW + 10)),
        recorded(held),
    );
    once(&mut segment, ahead, recorded(State::Done));
    once(&mut segment, op("behind", deduct(1)), recorded(State::Done));
    assert_eq!(segment.purge(NOW + 1049), Ok(Reply::Purged(0)));
    nothing(&mut segment, op("behind", deduct(1)), recorded(State::Done));
    assert_eq!(segment.purge(NOW + 1050), Ok(Reply::Purged(2)));
    assert!(
        segment.order.is_empty() && segment.ids.len() == 1,
        "it is not final"
    );
    segment.expire(NOW + 1050).unwrap();
    assert_eq!(segment.purge(NOW + 1050), Ok(Reply::Purged(1)));
}

#[test]
fn the_mark_never_falls() {
    let mut segment = segment(0);
    once(&mut segment, op("a", deposit(1)), recorded(State::Done));
    segment.purge(NOW + 1000).unwrap();
    segment.purge(NOW).unwrap();
    assert_eq!(segment.mark_ms, NOW);
}

fn refuse(name: &str, change: Change, version: u64) -> Refuse {
    Refuse {
        id: id(NOW, name),
        change,
        generation: 1,
        version,
        caller: ME,
    }
}

#[test]
fn insufficient_is_recorded_unless_something_changed() {
    let mut segment = segment(1);
    nothing(&mut segment, refuse("a", deduct(2), 1), Ok(Reply::Changed));
    let insufficient = recorded(State::Insufficient);
    once(
        &mut segment,
        refuse("a", deduct(2), 0),
        insufficient.clone(),
    );
    once(&mut segment, op("b", deposit(5)), recorded(State::Done));
    nothing(&mut segment, op("a", deduct(2)), insufficient);
    nothing(
        &mut segment,
        refuse("a", deduct(3), 1),
        Err(Refusal::Conflict),
    );
    nothing(
        &mut segment,
        refuse("b", deposit(5), 1),
        recorded(State::Done),
    );
}

#[test]
fn a_closed_segment_takes_no_new_money() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deposit(1)), recorded(State::Done));
    segment.close().unwrap();
    nothing(&mut segment, op("a", deposit(1)), recorded(State::Done));
    nothing(&mut segment, op("b", deposit(1)), Err(Refusal::Closed));
    once(&mut segment, op("c", deduct(6)), recorded(State::Done));
}
