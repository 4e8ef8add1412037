//! A segment's clock that is wrong for a moment: no request is refused for as long as it was ahead.

use ringfence_segment_lock::{
    limits::CLOCKS_APART_MS_MAX,
    segment::{Accept, Purge, Refusal, Replace},
};

use super::*;

/// Far ahead of all clocks that are right, in ms.
const AHEAD: u64 = NOW + 40 * 24 * 60 * 60 * 1000;

#[test]
fn a_purge_by_a_wrong_clock_refuses_only_what_it_dropped() {
    let mut segment = segment(5);
    once(&mut segment, op("a", deduct(1)), recorded(State::Done));
    assert_eq!(segment.apply(&Purge.into(), AHEAD), Ok(Reply::Purged(1)));
    let too_old = Err(Refusal::TooOld { mark_ms: NOW });
    nothing(&mut segment, op("a", deduct(1)), too_old);
    let next = Op {
        id: id(NOW + 1, "b"),
        ..op("b", deduct(1))
    };
    once(&mut segment, next, recorded(State::Done));
}

#[test]
fn a_loss_is_not_accepted_by_a_wrong_clock() {
    let in_force = first_layout();
    let max_ms = CLOCKS_APART_MS_MAX + TERMS.skew_ms;
    let at = |at_ms| {
        let differ = Refusal::ClocksDiffer {
            now_ms: NOW,
            at_ms,
            max_ms,
        };
        let accept = Accept {
            version: 0,
            others: [].into(),
            in_force: in_force.clone(),
            at_ms,
        };
        let create = Create {
            prepare: in_force.clone(),
            terms: TERMS,
            credit: 0,
            planned_ms: NOW,
        };
        let replace = Replace {
            create,
            losses: 0,
            at_ms,
        };
        (accept, Request::from(replace), differ)
    };
    let mut doubtful = segment(5);
    doubtful.doubtful = true;
    for at_ms in [NOW - max_ms - 1, NOW + max_ms + 1] {
        let (accept, replace, differ) = at(at_ms);
        assert_eq!(Segment::made_by(&replace, NOW), Err(differ.clone()));
        nothing(&mut doubtful, accept, Err(differ));
    }
    let (accept, replace, _) = at(NOW - max_ms);
    assert!(Segment::made_by(&replace, NOW).is_ok());
    doubtful.apply(&accept.into(), NOW).unwrap();
    assert!(!doubtful.doubtful);
}
