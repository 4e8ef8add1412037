//! Reservations: only held money moves, once.

use ringfence_segment_lock::segment::{Cancel, Confirm, Expire, Refusal, Reply, State};

use super::*;

fn held() -> State {
    State::Held {
        amount: amount(3),
        deadline_ms: NOW + 10,
    }
}

fn reserved() -> Segment {
    let mut segment = segment(5);
    once(
        &mut segment,
        op("a", reserve(3, NOW + 10)),
        recorded(held()),
    );
    assert_eq!((segment.value, segment.held), (2, 3));
    segment
}

fn confirm(name: &str) -> Confirm {
    Confirm {
        id: id(NOW, name),
        amount: None,
        generation: 1,
        caller: ME,
    }
}

fn cancel(name: &str) -> Cancel {
    Cancel {
        id: id(NOW, name),
        generation: 1,
        caller: ME,
    }
}

#[test]
fn confirmed_money_is_spent() {
    let mut segment = reserved();
    once(&mut segment, confirm("a"), recorded(State::Confirmed));
    nothing(&mut segment, cancel("a"), recorded(State::Confirmed));
    assert_eq!(segment.expire(NOW + 10), Ok(Reply::Expired(0)));
    assert_eq!((segment.value, segment.held), (2, 0));
}

#[test]
fn cancelled_money_comes_back_once() {
    let mut segment = reserved();
    let version = segment.version;
    once(&mut segment, cancel("a"), recorded(State::Cancelled));
    nothing(&mut segment, confirm("a"), recorded(State::Cancelled));
    assert_eq!(segment.expire(NOW + 10), Ok(Reply::Expired(0)));
    assert_eq!((segment.value, segment.held), (5, 0));
    assert_eq!(segment.version, version + 1);
}

#[test]
fn expired_money_comes_back_once_and_can_no_longer_be_confirmed() {
    let mut segment = reserved();
    let version = segment.version;
    assert_eq!(segment.expire(NOW + 9), Ok(Reply::Expired(0)));
    // Before its turn to be swept.
    let late = segment.confirm(&confirm("a"), NOW + 10);
    assert_eq!(state_in(late), recorded(State::Expired));
    assert_eq!(segment.expire(NOW + 10), Ok(Reply::Expired(0)));
    nothing(&mut segment, cancel("a"), recorded(State::Expired));
    nothing(
        &mut segment,
        op("a", reserve(3, NOW + 10)),
        recorded(State::Expired),
    );
    assert_eq!((segment.value, segment.held), (5, 0));
    assert_eq!(segment.version, version + 1);
}

#[test]
fn a_change_expires_what_is_due_first() {
    let mut segment = reserved();
    assert_eq!(
        state_in(segment.op(&op("b", deduct(5)), NOW + 10)),
        recorded(State::Done)
    );
}

#[test]
fn a_reservation_cancelled_before_it_comes_takes_nothing() {
    let mut segment = segment(5);
    nothing(&mut segment, confirm("a"), Ok(Reply::Unknown));
    once(&mut segment, cancel("a"), recorded(State::Cancelled));
    nothing(
        &mut segment,
        op("a", reserve(3, NOW + 10)),
        recorded(State::Cancelled),
    );
}

#[test]
fn only_a_reservation_is_confirmed_or_cancelled() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    let sent = State::Sent {
        amount: amount(1),
        to: account("b"),
    };
    once(&mut segment, op("b", transfer(1, "b")), recorded(sent));
    for name in ["a", "b"] {
        nothing(&mut segment, confirm(name), Err(Refusal::Conflict));
        nothing(&mut segment, cancel(name), Err(Refusal::Conflict));
    }
}

#[test]
fn nothing_is_held_for_longer_than_it_is_remembered() {
    let mut segment = segment(5);
    let refused = Err(Refusal::DeadlineTooLate {
        deadline_ms: NOW + 1001,
        max_ms: NOW + 1000,
    });
    nothing(&mut segment, op("a", reserve(3, NOW + 1001)), refused);
}

#[test]
fn one_call_expires_a_bounded_number() {
    let mut segment = segment(100);
    segment.terms.ids_max = 100;
    for name in 0..20 {
        segment
            .op(&op(&name.to_string(), reserve(1, NOW + 10)), NOW)
            .unwrap();
    }
    assert_eq!(
        segment.apply(&Expire.into(), NOW + 10),
        Ok(Reply::Expired(16))
    );
    assert_eq!(
        segment.apply(&Expire.into(), NOW + 10),
        Ok(Reply::Expired(4))
    );
    assert_eq!((segment.value, segment.held), (100, 0));
}

#[test]
fn in_doubt_an_end_is_repeated_and_none_is_made() {
    let mut ended = reserved();
    once(&mut ended, confirm("a"), recorded(State::Confirmed));
    ended.doubtful = true;
    nothing(&mut ended, confirm("a"), recorded(State::Confirmed));
    nothing(&mut ended, cancel("a"), recorded(State::Confirmed));
    let mut segment = reserved();
    segment.doubtful = true;
    for name in ["a", "unknown"] {
        nothing(&mut segment, confirm(name), Err(Refusal::Doubtful));
        nothing(&mut segment, cancel(name), Err(Refusal::Doubtful));
    }
}

#[test]
fn a_reservation_that_is_repeated_past_its_deadline_has_expired() {
    let mut segment = segment(5);
    let reserved = Request::from(op("a", reserve(3, NOW + 10)));
    segment.apply(&reserved, NOW).unwrap();
    let repeated = segment.apply(&reserved, NOW + 10);
    assert_eq!(state_in(repeated), recorded(State::Expired));
    assert_eq!((segment.value, segment.held), (5, 0));
}
