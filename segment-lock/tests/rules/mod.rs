//! The rules of one segment, one by one.

mod away;
mod crashed;
mod deleted;
mod history;
mod layout;
mod legs;
mod limits;
mod loans;
mod losses;
mod lost;
mod memory;
mod order;
mod reservations;
mod transfers;
mod two_reads;
mod wrong_clocks;

use ringfence_segment_lock::{
    Account, Amount, At, Caller, Change, Durability, HashKey, Leg, Legs, NewAccount, RequestId,
    Terms, Unit,
    segment::{Answer, Create, Loan, Money, Op, Prepare, Reply, Request, Segment, State},
};

/// When everything happens, in ms.
const NOW: u64 = 1_000_000;

const TERMS: Terms = Terms {
    idempotency_for_ms: 1000,
    idempotency_at_least_ms: 100,
    skew_ms: 50,
    ids_max: 4,
    ..Terms::in_memory()
};

const ME: Caller = Caller {
    process: 1,
    call: 1,
};

const OTHER: Caller = Caller {
    process: 2,
    call: 1,
};

/// The first layout.
fn first_layout() -> Prepare {
    Prepare {
        generation: 1,
        base: 0,
        from_ms: 0,
        closed: false,
        mark_ms: 0,
        manifest: "layout".into(),
    }
}

/// A segment of the first layout, generation 1, with so much in it.
fn segment(value: i64) -> Segment {
    let prepare = first_layout();
    Segment::new(&Create {
        prepare,
        terms: TERMS,
        credit: value,
        planned_ms: NOW,
    })
}

fn amount(value: i64) -> Amount {
    Amount::new(value).unwrap()
}

fn id(time_ms: u64, name: &str) -> RequestId {
    RequestId::new(time_ms, name).unwrap()
}

fn account(name: &str) -> Account {
    Account::new(name).unwrap()
}

/// The segment `index` of an account.
fn at(name: &str, index: u32) -> At {
    At {
        account: account(name),
        index,
        place: 0,
        is_replicated: false,
        hash_key: HashKey::default(),
    }
}

fn deposit(value: i64) -> Change {
    Change::Deposit {
        amount: amount(value),
    }
}

fn deduct(value: i64) -> Change {
    Change::Deduct {
        amount: amount(value),
    }
}

fn reserve(value: i64, deadline_ms: u64) -> Change {
    Change::Reserve {
        amount: amount(value),
        deadline_ms,
    }
}

fn transfer(value: i64, to: &str) -> Change {
    Change::Transfer {
        amount: amount(value),
        to: account(to),
    }
}

fn legs(legs: &[(&str, i64)]) -> Legs {
    let leg = |&(to, value): &(&str, i64)| Leg {
        to: account(to),
        amount: amount(value),
    };
    Legs::new(legs.iter().map(leg).collect()).unwrap()
}

/// A request of now, by the first layout.
fn op(name: &str, change: Change) -> Op {
    Op {
        id: id(NOW, name),
        change,
        generation: 1,
        lands: Vec::new(),
        logged: true,
        reference: None,
        caller: ME,
    }
}

fn loan(from: u32, seq: u64, value: i64) -> Loan {
    Loan {
        from,
        seq,
        amount: amount(value),
    }
}

/// The answer with that state, whatever the money after it.
fn recorded(state: State) -> Answer {
    Ok(Reply::Recorded(state, Money::default()))
}

/// An answer, apart from the money after it.
fn state_in(answer: Answer) -> Answer {
    match answer {
        Ok(Reply::Recorded(state, _)) => recorded(state),
        answer => answer,
    }
}

/// That a request answers `answer` twice, and writes nothing the second time.
#[track_caller]
fn once(segment: &mut Segment, request: impl Into<Request>, answer: Answer) {
    let request = request.into();
    assert_eq!(state_in(segment.apply(&request, NOW)), answer);
    let before = segment.clone();
    let again = state_in(segment.apply(&request, NOW));
    assert_eq!(again, answer, "repeated");
    assert_eq!(*segment, before, "repeated");
}

/// That a request answers `answer`, and writes nothing.
#[track_caller]
fn nothing(segment: &mut Segment, request: impl Into<Request>, answer: Answer) {
    let before = segment.clone();
    assert_eq!(state_in(segment.apply(&request.into(), NOW)), answer);
    assert_eq!(*segment, before);
}
