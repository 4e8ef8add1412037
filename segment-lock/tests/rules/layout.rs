//! Layouts: who knows too old a one is told so, wherever it would matter.

use ringfence_segment_lock::segment::{
    Cancel, Collect, Confirm, Op, Refusal, Refuse, Reply, State,
};

use super::*;

/// When the second layout begins, in ms.
const CUT: u64 = NOW + 20;

const LAYOUT: Answer = Err(Refusal::Layout { generation: 2 });

fn plan(generation: u64, base: u64, from_ms: u64) -> Prepare {
    Prepare {
        generation,
        base,
        from_ms,
        closed: false,
        mark_ms: 0,
        manifest: "layout".into(),
    }
}

fn prepared(value: i64) -> Segment {
    let mut segment = segment(value);
    once(&mut segment, plan(2, 1, CUT), Ok(Reply::Prepared));
    segment
}

fn at(time_ms: u64, generation: u64, change: Change) -> Op {
    Op {
        id: id(time_ms, "a"),
        generation,
        ..op("a", change)
    }
}

#[test]
fn old_ids_stay_with_callers_that_know_the_layout_before() {
    for generation in [1, 2] {
        let old = at(CUT - 1, generation, deduct(1));
        once(&mut prepared(5), old, recorded(State::Done));
    }
    nothing(&mut prepared(5), at(CUT - 1, 0, deduct(1)), LAYOUT);
}

#[test]
fn new_ids_are_for_callers_that_know_the_new_layout() {
    nothing(&mut prepared(5), at(CUT, 1, deduct(1)), LAYOUT);
    once(
        &mut prepared(5),
        at(CUT, 2, deduct(1)),
        recorded(State::Done),
    );
    let id = id(CUT, "a");
    let confirm = Confirm {
        id: id.clone(),
        amount: None,
        generation: 1,
        caller: ME,
    };
    nothing(&mut prepared(5), confirm, LAYOUT);
    let cancel = Cancel {
        id,
        generation: 1,
        caller: ME,
    };
    nothing(&mut prepared(5), cancel, LAYOUT);
}

#[test]
fn a_caller_that_does_not_know_all_segments_concludes_nothing() {
    let mut segment = prepared(5);
    nothing(&mut segment, at(NOW, 1, deduct(6)), LAYOUT);
    let refuse = Refuse {
        id: id(NOW, "a"),
        change: deduct(6),
        generation: 1,
        version: 0,
        caller: ME,
    };
    nothing(&mut segment, refuse, LAYOUT);
    let collect = Collect {
        generation: 1,
        freeze: None,
    };
    nothing(&mut segment, collect, LAYOUT);
}

#[test]
fn a_layout_does_not_begin_before_what_is_decided_or_forgotten() {
    let later = |after_ms| {
        Ok(Reply::Later {
            after_ms,
            now_ms: NOW,
        })
    };
    let mut decided = segment(5);
    once(&mut decided, at(NOW, 1, deduct(1)), recorded(State::Done));
    nothing(&mut decided, plan(2, 1, NOW), later(NOW));
    once(&mut decided, plan(2, 1, NOW + 1), Ok(Reply::Prepared));
    let mut forgotten = segment(5);
    forgotten.mark_ms = NOW;
    nothing(&mut forgotten, plan(2, 1, NOW), later(NOW));
}

#[test]
fn a_plan_that_was_replaced_prepares_nothing() {
    let mut segment = prepared(0);
    once(&mut segment, plan(3, 1, CUT + 5), Ok(Reply::Prepared));
    nothing(&mut segment, plan(2, 1, CUT), Ok(Reply::Stale));
    let old = at(CUT + 4, 1, deposit(1));
    once(&mut segment, old, recorded(State::Done));
}

#[test]
fn a_created_segment_knows_no_id_before_its_layout() {
    let create = Create {
        prepare: plan(2, 1, CUT),
        terms: TERMS,
        credit: 0,
        planned_ms: NOW,
    };
    let mut segment = Segment::new(&create);
    once(&mut segment, create, Ok(Reply::Prepared));
    let too_old = Err(Refusal::TooOld { mark_ms: CUT - 1 });
    nothing(&mut segment, at(CUT - 1, 2, deposit(1)), too_old);
    once(&mut segment, at(CUT, 2, deposit(1)), recorded(State::Done));
}

#[test]
fn a_plan_carries_the_mark_below_which_another_layout_may_have_decided() {
    let mut segment = segment(5);
    let marks = Prepare {
        mark_ms: CUT - 1,
        ..plan(2, 1, CUT)
    };
    once(&mut segment, marks, Ok(Reply::Prepared));
    let too_old = Err(Refusal::TooOld { mark_ms: CUT - 1 });
    nothing(&mut segment, at(CUT - 1, 2, deduct(1)), too_old);
}
