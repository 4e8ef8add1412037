//! Transfers: the source waits for the destination, which remembers until the transfer is finished at its source.

use ringfence_segment_lock::segment::{
    CreditId, FinishTransfer, Forget, GiveCredit, Outcome, Pinned, PinnedCredit, Purge, Refusal,
    Reply, Sent, State,
};

use super::*;

fn to_b() -> State {
    State::Sent {
        amount: amount(3),
        to: account("b"),
    }
}

fn sent() -> Segment {
    let mut segment = segment(5);
    once(&mut segment, op("a", transfer(3, "b")), recorded(to_b()));
    assert_eq!((segment.value, segment.held), (2, 3));
    segment
}

fn credit_id(from: &str) -> CreditId {
    CreditId {
        id: id(NOW, "a"),
        from: account(from),
        reservation: None,
    }
}

fn credit(from: &str) -> GiveCredit {
    GiveCredit {
        id: credit_id(from),
        content: transfer(3, "b").digest(),
        amount: amount(3),
        unit: Unit::NONE,
        is_promise: false,
        generation: 1,
        caller: ME,
    }
}

fn finish_transfer(outcome: Outcome) -> FinishTransfer {
    FinishTransfer {
        id: id(NOW, "a"),
        refused: match outcome {
            Outcome::Credited => Vec::new(),
            Outcome::Refused => vec![account("b")],
        },
        generation: 1,
        caller: ME,
    }
}

fn credited(outcome: Outcome) -> Answer {
    Ok(Reply::Credited(outcome))
}

#[test]
fn a_source_finishes_a_transfer_once() {
    let mut segment = sent();
    once(
        &mut segment,
        finish_transfer(Outcome::Credited),
        recorded(State::Delivered),
    );
    nothing(
        &mut segment,
        finish_transfer(Outcome::Refused),
        recorded(State::Delivered),
    );
    assert_eq!((segment.value, segment.held), (2, 0));
    let mut segment = sent();
    once(
        &mut segment,
        finish_transfer(Outcome::Refused),
        recorded(State::Returned),
    );
    nothing(
        &mut segment,
        finish_transfer(Outcome::Credited),
        recorded(State::Returned),
    );
    assert_eq!((segment.value, segment.held), (5, 0));
}

#[test]
fn a_source_never_forgets_what_it_sent() {
    let mut segment = sent();
    assert_eq!(segment.purge(NOW + 9_000_000), Ok(Reply::Purged(0)));
    assert_eq!((segment.value, segment.held), (2, 3));
    let listed = segment.sent_after(&Sent { after: None });
    assert_eq!(listed, Ok(Reply::Sent(vec![(id(NOW, "a"), to_b())])));
    once(
        &mut segment,
        finish_transfer(Outcome::Credited),
        recorded(State::Delivered),
    );
    let listed = segment.sent_after(&Sent { after: None });
    assert_eq!(listed, Ok(Reply::Sent(vec![])));
    assert_eq!(segment.purge(NOW + 9_000_000), Ok(Reply::Purged(1)));
}

#[test]
fn a_credit_counts_once_and_is_kept_until_it_is_unpinned() {
    let mut segment = segment(0);
    once(&mut segment, credit("a"), credited(Outcome::Credited));
    assert_eq!(segment.value, 3);
    assert_eq!(segment.purge(NOW + 1000), Ok(Reply::Purged(0)));
    assert_eq!(
        segment.credit(&credit("a"), NOW + 1000),
        credited(Outcome::Credited)
    );
    assert_eq!(
        segment.pinned_after(&Pinned { after: None }),
        Ok(Reply::Pinned(vec![PinnedCredit {
            id: credit_id("a"),
            promised_ms: None,
        }]))
    );
    let forget = Forget {
        id: credit_id("a"),
        generation: 1,
    };
    once(&mut segment, forget, Ok(Reply::Done));
    nothing(&mut segment, credit("a"), credited(Outcome::Credited));
    assert_eq!(segment.purge(NOW + 1000), Ok(Reply::Purged(1)));
    // By now the transfer is finished at its source, and this changes nothing there.
    assert_eq!(
        segment.credit(&credit("a"), NOW + 1000),
        credited(Outcome::Refused)
    );
    assert_eq!(segment.value, 3);
}

#[test]
fn two_accounts_may_use_one_id() {
    let mut segment = segment(0);
    once(&mut segment, credit("a"), credited(Outcome::Credited));
    once(&mut segment, credit("c"), credited(Outcome::Credited));
    assert_eq!(segment.value, 6);
}

#[test]
fn a_refused_transfer_stays_refused() {
    let mut segment = segment(i64::MAX - 2);
    once(&mut segment, credit("a"), credited(Outcome::Refused));
    segment.value = 0;
    nothing(&mut segment, credit("a"), credited(Outcome::Refused));
    segment.close().unwrap();
    once(&mut segment, credit("c"), credited(Outcome::Refused));
    segment.closed = false;
    nothing(&mut segment, credit("c"), credited(Outcome::Refused));
    segment.purge(NOW + 1000).unwrap();
    nothing(&mut segment, credit("c"), credited(Outcome::Refused));
    assert_eq!(segment.value, 0);
}

#[test]
fn a_credit_from_the_future_waits() {
    let mut segment = segment(0);
    let future = Err(Refusal::IdInFuture {
        ahead_ms: 51,
        skew_ms: 50,
    });
    assert_eq!(segment.credit(&credit("a"), NOW - 51), future);
    once(&mut segment, credit("a"), credited(Outcome::Credited));
}

#[test]
fn only_a_transfer_is_finished() {
    let mut segment = segment(5);
    nothing(
        &mut segment,
        finish_transfer(Outcome::Refused),
        Ok(Reply::Unknown),
    );
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    nothing(
        &mut segment,
        finish_transfer(Outcome::Refused),
        Err(Refusal::Conflict),
    );
    segment.apply(&Purge.into(), NOW + 1000).unwrap();
    let old = Err(Refusal::TooOld { mark_ms: NOW });
    nothing(&mut segment, finish_transfer(Outcome::Refused), old);
}

#[test]
fn in_doubt_a_decided_transfer_is_answered_and_none_is_decided() {
    let mut source = sent();
    source.doubtful = true;
    for outcome in [Outcome::Credited, Outcome::Refused] {
        nothing(
            &mut source,
            finish_transfer(outcome),
            Err(Refusal::Doubtful),
        );
    }
    source.doubtful = false;
    let delivered = recorded(State::Delivered);
    once(
        &mut source,
        finish_transfer(Outcome::Credited),
        delivered.clone(),
    );
    source.doubtful = true;
    nothing(
        &mut source,
        finish_transfer(Outcome::Credited),
        delivered.clone(),
    );
    nothing(&mut source, op("a", transfer(3, "b")), delivered);

    let mut destination = segment(0);
    once(&mut destination, credit("a"), credited(Outcome::Credited));
    destination.doubtful = true;
    nothing(&mut destination, credit("a"), credited(Outcome::Credited));
    nothing(&mut destination, credit("c"), Err(Refusal::Doubtful));
    destination.mark_ms = NOW;
    nothing(&mut destination, credit("c"), Err(Refusal::Doubtful));
}
