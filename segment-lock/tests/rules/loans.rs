//! Loans: numbered, so that each counts once.

use ringfence_segment_lock::segment::{Channel, Land, Lend, Op, Refusal, Reply, State};

use super::*;

fn lend(landed: u64, want: i64) -> Lend {
    Lend {
        to: 1,
        landed,
        want: amount(want),
        caller: ME,
    }
}

fn land(seq: u64, value: i64) -> Land {
    Land {
        loan: loan(1, seq, value),
        caller: ME,
    }
}

fn lent(seq: u64, amount: i64) -> Answer {
    Ok(Reply::Lent(Channel { seq, amount }))
}

#[test]
fn a_loan_is_taken_once() {
    let mut segment = segment(5);
    once(&mut segment, lend(0, 3), lent(1, 3));
    assert_eq!((segment.value, segment.version), (2, 1));
    nothing(&mut segment, lend(0, 9), lent(1, 3));
    once(&mut segment, lend(1, 3), lent(2, 2));
    nothing(&mut segment, lend(0, 1), lent(2, 2));
    nothing(&mut segment, lend(2, 1), Ok(Reply::Nothing));
}

#[test]
fn a_loan_has_a_number_that_the_segment_never_had() {
    let mut segment = segment(5);
    once(&mut segment, lend(0, 1), lent(1, 1));
    segment.op(&op("between", deposit(1)), NOW).unwrap();
    once(&mut segment, lend(1, 1), lent(3, 1));
    let version = segment.version;
    // It may have lost later loans.
    segment.came_back();
    let next = segment.version + 1;
    assert!(next > version + 1);
    once(&mut segment, lend(9, 1), lent(next, 1));
}

#[test]
fn a_loan_lands_once() {
    let mut segment = segment(0);
    assert_eq!(segment.land(&land(1, 3), NOW), Ok(Reply::Landed));
    nothing(&mut segment, land(1, 3), Ok(Reply::Stale));
    assert_eq!(segment.land(&land(5, 4), NOW), Ok(Reply::Landed));
    for seq in [1, 3, 5] {
        nothing(&mut segment, land(seq, 3), Ok(Reply::Stale));
    }
    assert_eq!((segment.value, segment.version), (7, 2));
}

#[test]
fn a_loan_that_does_not_fit_stays_in_flight() {
    let mut segment = segment(i64::MAX);
    let full = Err(Refusal::Full {
        owned: i64::MAX,
        amount: 1,
        max: i64::MAX,
    });
    nothing(&mut segment, land(1, 1), full);
}

#[test]
fn an_op_lands_what_it_brings_once() {
    let mut segment = segment(1);
    let bring = |name| Op {
        lands: vec![loan(1, 1, 2), loan(1, 1, 2), loan(2, 3, 1), loan(2, 1, 9)],
        ..op(name, deduct(3))
    };
    once(&mut segment, bring("a"), recorded(State::Done));
    assert_eq!(segment.value, 1);
    assert!(matches!(segment.op(&bring("b"), NOW), Ok(Reply::Short(_))));
    assert_eq!(segment.value, 1);
}

#[test]
fn loans_that_come_together_are_counted_together_before_any_lands() {
    let mut segment = segment(i64::MAX - 5);
    let mut brought = op("a", deduct(i64::MAX));
    brought.lands = vec![loan(1, 1, 5), loan(2, 1, 5), loan(1, 1, 5)];
    let full = Err(Refusal::Full {
        owned: i64::MAX - 5,
        amount: 15,
        max: i64::MAX,
    });
    nothing(&mut segment, brought.clone(), full);

    brought.lands.truncate(1);
    assert_eq!(state_in(segment.op(&brought, NOW)), recorded(State::Done));
    assert_eq!((segment.value, segment.inn[&1]), (0, 1));
}
